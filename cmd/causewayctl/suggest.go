package main

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

func newSuggest(c *cli) *cobra.Command {
	return newGroup("suggest", "Write policies from the traffic that a zone has seen", newSuggestPermissions(c))
}

func newSuggestPermissions(c *cli) *cobra.Command {
	scope, dataplane, zone, since, paths := &scopeFlags{}, "", "", 24*time.Hour, "exact"
	cmd := &cobra.Command{
		Use:   "permissions --dataplane NAME",
		Short: "Write the least MeshTrafficPermission that allows the traffic that was observed",
		Long: "Prints a resource for each inbound as YAML (or JSON, with -o json) for you to read, edit and apply.\n" +
			"They allow what the zone saw the Dataplane allow: each client with its methods, and the paths one by\n" +
			"one. What it saw denied is replayed against them, and warnings report the result. With --paths\n" +
			"prefix they also allow everything below the first segment of each path, which may be more than was\n" +
			"seen and may include what was denied. A global asks the zone that --zone names; what it prints then\n" +
			"selects the Dataplane by its zone, so that it can be applied on the global, too.\n\n" +
			"Exit status: 0 answered, 2 unknown: the zone does not collect reports, it saw no call, there is no\n" +
			"such Dataplane, or the zone did not answer.",
		Example: "  causewayctl suggest permissions --dataplane backend-1 --since 24h > allow.yaml\n" +
			"  causewayctl suggest permissions --dataplane backend-1 | causewayctl diff -f -\n" +
			"  causewayctl suggest permissions --dataplane backend-1 --zone zone-1",
		Args: cobra.NoArgs,
		RunE: c.question(func(ctx context.Context, client *api.Client, _ []string) error {
			key, err := namedDataplane(ctx, client, scope, dataplane)
			if err != nil {
				return err
			}
			query := url.Values{"dataplane": {key.Name}, "mesh": {key.Mesh}, "since": {since.String()}, "paths": {paths}}
			if key.Namespace != "" {
				query.Set("namespace", key.Namespace)
			}
			if zone != "" && !isKRI(dataplane) {
				query.Set("zone", zone)
			}
			var answer api.Suggestion
			if err := client.JSON(ctx, api.Request{Path: "/_suggest/permissions", Query: query}, &answer); err != nil {
				if api.IsNotFound(err) && zone == "" && !isZone(ctx, client) {
					return &advised{err, "--zone NAME names the zone in which the Dataplane has this name"}
				}
				return err
			}
			return c.printSuggestion(&answer)
		}),
	}
	scope.add(cmd)
	f := cmd.Flags()
	f.StringVar(&dataplane, "dataplane", "", "`name`, or KRI, of the Dataplane that was called")
	f.StringVar(&zone, "zone", "", "`zone` of the Dataplane, whose name and namespace are those in that zone")
	f.StringVar(&paths, "paths", paths, "allow paths by `exact` value, or by prefix")
	_ = cmd.RegisterFlagCompletionFunc("paths", cobra.FixedCompletions([]string{"exact", "prefix"},
		cobra.ShellCompDirectiveNoFileComp))
	f.DurationVar(&since, "since", since, "how far to look back")
	_ = cmd.MarkFlagRequired("dataplane")
	c.completeZoneAndType(cmd)
	_ = cmd.RegisterFlagCompletionFunc("dataplane", func(cmd *cobra.Command, _ []string, prefix string) ([]string,
		cobra.ShellCompDirective) {
		return c.completeName(resources.TypeDataplane, scope)(cmd, nil, prefix)
	})
	return cmd
}

// printSuggestion prints only resources that can be applied on standard output.
func (c *cli) printSuggestion(s *api.Suggestion) error {
	for _, warning := range s.Warnings {
		fmt.Fprintf(c.errOut, "warning: %s\n", warning)
	}
	if s.Unknown != "" {
		fmt.Fprintf(c.errOut, "its callers are unknown: %s\n", s.Unknown)
		return errUnknown
	}
	fmt.Fprintf(c.errOut, "from %d observed requests\n", s.Observed)
	if c.output != formatJSON {
		return printYAML(c.out, s.Resources...)
	}
	for _, r := range s.Resources {
		if err := printJSON(c.out, r); err != nil {
			return err
		}
	}
	return nil
}
