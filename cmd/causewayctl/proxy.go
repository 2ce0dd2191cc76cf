package main

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

func newProxy(c *cli) *cobra.Command {
	return newGroup("proxy", "Show the configuration, metrics, endpoints and certificates of a proxy",
		newProxyConfig(c), newProxyStats(c), newProxyClusters(c), newProxyCertificates(c))
}

// proxyLong is what all the commands need.
const proxyLong = "The zone asks the Envoy itself. A global passes the question on to the zone that --zone or the KRI\n" +
	"names. The Envoy must be connected, its Dataplane must have networking.admin.port, a free port of\n" +
	"its address, and the caller needs the permission \"observe\" for the Dataplane on the server that\n" +
	"is asked."

func newProxyConfig(c *cli) *cobra.Command {
	return c.newProxyQuestion(&cobra.Command{
		Use:   "config NAME | config KRI",
		Short: "Print the configuration that an Envoy has, as JSON; keys and tokens are left out",
		Long:  "Prints Envoy's config_dump, endpoints included.\n\n" + proxyLong,
		Example: "  causewayctl proxy config backend-1\n" +
			"  causewayctl proxy config backend-1 --zone zone-1 -o yaml",
	}, "xds", true, nil)
}

func newProxyStats(c *cli) *cobra.Command {
	match, unused := "", false
	cmd := c.newProxyQuestion(&cobra.Command{
		Use:   "stats NAME | stats KRI",
		Short: "Print the metrics of an Envoy",
		Long:  "Prints the metrics that the Envoy has counted since it started, in Envoy's own names.\n\n" + proxyLong,
		Example: "  causewayctl proxy stats backend-1 --match rbac\n" +
			"  causewayctl proxy stats backend-1 --match 'upstream_rq_(5xx|time)' -o json",
	}, "stats", false, func(q url.Values) {
		if match != "" {
			q.Set("match", match)
		}
		if unused {
			q.Set("unused", "true")
		}
	})
	cmd.Flags().StringVar(&match, "match", "", "only metrics whose name has a match of this regular `expression`")
	cmd.Flags().BoolVar(&unused, "unused", false, "also metrics that have never changed")
	return cmd
}

func newProxyClusters(c *cli) *cobra.Command {
	return c.newProxyQuestion(&cobra.Command{
		Use:     "clusters NAME | clusters KRI",
		Short:   "Print where an Envoy sends to: each endpoint with its health and counts",
		Long:    "Prints Envoy's clusters with their endpoints.\n\n" + proxyLong,
		Example: "  causewayctl proxy clusters frontend-1",
	}, "clusters", false, nil)
}

func newProxyCertificates(c *cli) *cobra.Command {
	return c.newProxyQuestion(&cobra.Command{
		Use:     "certs NAME | certs KRI",
		Short:   "Print the certificates that an Envoy uses and trusts, as JSON",
		Long:    "Prints Envoy's certificates with their ends; private keys never leave the Envoy.\n\n" + proxyLong,
		Example: "  causewayctl proxy certs backend-1",
	}, "certs", true, nil)
}

// newProxyQuestion completes a command that asks for one part of a proxy. onlyJSON is set for parts that Envoy has in no
// other form; add adds to the query.
func (c *cli) newProxyQuestion(cmd *cobra.Command, part string, onlyJSON bool, add func(url.Values)) *cobra.Command {
	scope, zone := &scopeFlags{}, ""
	cmd.Args = cobra.ExactArgs(1)
	cmd.ValidArgsFunction = c.completeName(resources.TypeDataplane, scope)
	cmd.RunE = c.operation(func(ctx context.Context, client *api.Client, args []string) error {
		query := url.Values{}
		if scope.namespace != "" {
			query.Set("namespace", scope.namespace)
		}
		if zone != "" {
			query.Set("zone", zone)
		}
		structured := c.output == formatJSON || c.output == formatYAML
		if structured && !onlyJSON {
			query.Set("format", "json")
		}
		if add != nil {
			add(query)
		}
		raw, err := client.Do(ctx, api.Request{Path: "/meshes/" + scope.mesh + "/dataplanes/" + args[0] + "/" + part, Query: query})
		if err != nil {
			return err
		}
		switch {
		case c.output == formatYAML:
			return printYAML(c.out, json.RawMessage(raw))
		case structured || onlyJSON:
			return printJSON(c.out, json.RawMessage(raw))
		}
		_, err = c.out.Write(raw)
		return err
	})
	scope.add(cmd)
	cmd.Flags().StringVar(&zone, "zone", "", "`zone` of the Dataplane, whose name and namespace are those in that zone")
	c.completeZoneAndType(cmd)
	return cmd
}
