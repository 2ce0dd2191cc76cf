package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/server"
)

func newDataplane(c *cli) *cobra.Command {
	return newGroup("dataplane", "Manage the tokens with which proxies authenticate to their zone",
		newDataplaneToken(c), newDataplaneRevoke(c))
}

func newDataplaneToken(c *cli) *cobra.Command {
	scope, request, ingress, out := &scopeFlags{}, api.DataplaneTokenRequest{}, "", ""
	var validFor time.Duration
	cmd := &cobra.Command{
		Use:   "token [DATAPLANE]",
		Short: "Issue a token for a proxy",
		Long: "Asks the zone for a token that proves which Dataplane a proxy serves: one with the given name,\n" +
			"workload and labels, in the given namespace or in none. Proxies need one when the zone's xDS port is\n" +
			"not on loopback. --address names the zone of the Dataplane. Pass the token to causeway-zone\n" +
			"bootstrap --token-file.",
		Example: "  causewayctl dataplane token backend-1 --out token\n" +
			"  causewayctl dataplane token --label app=backend --valid-for 720h --out token\n" +
			"  causewayctl dataplane token --zone-ingress ingress --out token",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				request.Dataplane = args[0]
			}
			if validFor != 0 {
				request.ValidFor = validFor.String()
			}
			none := request.Dataplane == "" && request.Workload == "" && len(request.Labels) == 0
			if none == (ingress == "") {
				return usagef("name the owner of the token: a Dataplane, --workload, --label, or --zone-ingress")
			}
			return c.operation(func(ctx context.Context, client *api.Client, _ []string) error {
				return c.issueToken(ctx, client, scope, ingress, request, out)
			})(cmd, args)
		},
		ValidArgsFunction: c.completeName(resources.TypeDataplane, scope),
	}
	scope.add(cmd)
	f := cmd.Flags()
	f.StringVar(&request.Workload, "workload", "", "the Dataplane's required `workload`")
	f.StringToStringVarP(&request.Labels, "label", "l", nil, "a `key=value` that the Dataplane must have; may be repeated")
	f.StringVar(&ingress, "zone-ingress", "", "`name` of the ZoneIngress that the token is for, instead of a Dataplane")
	f.DurationVar(&validFor, "valid-for", 0, "how `long` the token is valid; 2160h by default, at most 8784h")
	f.StringVar(&out, "out", "", "`file` for the token, readable by its owner only; by default it is printed")
	return cmd
}

func (c *cli) issueToken(ctx context.Context, client *api.Client, scope *scopeFlags, ingress string,
	request api.DataplaneTokenRequest, out string) error {
	path := "/meshes/" + url.PathEscape(scope.mesh) + "/_dataplane-tokens"
	if ingress != "" {
		path = "/zoneingresses/" + url.PathEscape(ingress) + "/_token"
	}
	query := url.Values{}
	if scope.namespace != "" {
		query.Set("namespace", scope.namespace)
	}
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if out != "" {
		if err := server.CheckFile(out); err != nil {
			return err
		}
	}
	var issued api.DataplaneToken
	err = client.JSON(ctx, api.Request{Method: http.MethodPost, Path: path, Query: query, Body: body}, &issued)
	if api.IsNotFound(err) {
		return &advised{err, "only the zone of the proxies issues their tokens: --address must name that zone"}
	}
	if err != nil {
		return err
	}
	if out == "" {
		return c.printAnswer(issued, func() error {
			_, err := fmt.Fprintln(c.out, issued.Token)
			return err
		})
	}
	if err := server.WriteFile(out, []byte(issued.Token+"\n"), 0o600); err != nil {
		return err
	}
	issued.Token = ""
	return c.printAnswer(issued, func() error {
		_, err := fmt.Fprintf(c.out, "token     %s\nid        %s\nexpires   %s\n", out, issued.ID,
			issued.Expires.Format(time.RFC3339))
		return err
	})
}

func newDataplaneRevoke(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke-token ID",
		Short: "Revoke a proxy's token, and end the streams that it opened",
		Long: "The ID is what causewayctl dataplane token printed, and the claim jti of the token. The proxy\n" +
			"continues with its last configuration.",
		Example: "  causewayctl dataplane revoke-token 5b1f4c1e-3a0c-4b0e-9a53-0a3f6d0f7b7e",
		Args:    cobra.ExactArgs(1),
		RunE: c.operation(func(ctx context.Context, client *api.Client, args []string) error {
			body, err := json.Marshal(api.DataplaneTokenRevocation{ID: args[0]})
			if err != nil {
				return err
			}
			var answer api.DataplaneTokenRevocation
			if err := client.JSON(ctx, api.Request{Method: http.MethodPost, Path: "/_dataplane-tokens/_revoke",
				Body: body}, &answer); err != nil {
				return err
			}
			return c.printAnswer(answer, func() error {
				_, err := fmt.Fprintf(c.out, "token %s is refused from now on; the server does not check whether it was ever issued\n",
					answer.ID)
				return err
			})
		}),
	}
}
