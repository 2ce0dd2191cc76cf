package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/server"
)

// serverInfo is what commands show about a server.
type serverInfo struct {
	Product  string `json:"product"`
	Version  string `json:"version"`
	Hostname string `json:"hostname,omitempty"`
}

// fetchInfo asks a server for its product and version.
func fetchInfo(ctx context.Context, client *api.Client) (*serverInfo, error) {
	var index api.Index
	if err := client.JSON(ctx, api.Request{Path: "/"}, &index); err != nil {
		return nil, err
	}
	return &serverInfo{Product: index.Product, Version: index.Version, Hostname: index.Hostname}, nil
}

func newVersion(c *cli) *cobra.Command {
	clientOnly := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program and of the server",
		Example: "  causewayctl version\n" +
			"  causewayctl version --client",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if clientOnly {
				return c.printVersions(nil)
			}
			return c.operation(func(ctx context.Context, client *api.Client, _ []string) error {
				info, err := fetchInfo(ctx, client)
				if err != nil {
					_ = c.printVersions(nil)
					return err
				}
				return c.printVersions(info)
			})(cmd, args)
		},
	}
	cmd.Flags().BoolVar(&clientOnly, "client", false, "do not ask the server")
	return cmd
}

func (c *cli) printVersions(info *serverInfo) error {
	versions := struct {
		Client string      `json:"client"`
		Server *serverInfo `json:"server,omitempty"`
	}{server.Version(), info}
	switch c.output {
	case formatJSON:
		return printJSON(c.out, versions)
	case formatYAML:
		return printYAML(c.out, versions)
	default:
		t := &table{}
		t.add("client", "causewayctl", versions.Client)
		if info != nil {
			t.add("server", info.Product, info.Version, c.address)
		}
		return t.print(c.out)
	}
}
