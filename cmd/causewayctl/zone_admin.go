package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/resources"
)

// zoneDecision is a command that decides about a zone: revoke, enable, disable, delete.
type zoneDecision struct {
	verb, short, long string
	// question is the question before the action, with the zone's name; empty for none.
	question string
	// tell describes what was done.
	tell func(zone string, answer map[string]any) string
}

var zoneDecisions = []zoneDecision{
	{
		verb: "revoke", short: "Revoke all credentials of a zone at once",
		long: "Revokes the certificates, tokens and join strings of a zone. Its session ends within seconds, and it\n" +
			"can reconnect only with a new join string. It continues to serve its proxies, and other zones keep\n" +
			"what it wrote.",
		question: "Revoke all credentials of zone %s?",
		tell: func(zone string, a map[string]any) string {
			return fmt.Sprintf("zone %s: %v certificates, %v tokens and %v join strings are revoked; causewayctl zone create %s lets it join again", zone, a["certificates"], a["tokens"], a["joins"], zone)
		},
	},
	{
		verb: "disable", short: "Stop the sync with a zone",
		long: "The global rejects a disabled zone and withdraws its resources from other zones. The zone and the\n" +
			"global both keep what they have: enabling the zone restores everything.",
		tell: func(zone string, a map[string]any) string { return zoneChanged(zone, "disabled", a) },
	},
	{
		verb: "enable", short: "Resume the sync with a disabled zone",
		long: "Undoes zone disable.",
		tell: func(zone string, a map[string]any) string { return zoneChanged(zone, "enabled", a) },
	},
	{
		verb: "delete", short: "Remove a zone and everything that it wrote",
		long: "Ends the zone's session, revokes its credentials, and then removes what it wrote, here and from\n" +
			"other zones. The zone's own store does not change. The name can be reused: causewayctl zone create.\n" +
			"A zone that connected without a credential, which only --kds-insecure-anonymous allows, reconnects\n" +
			"unless its server is stopped.",
		question: "Delete zone %s, and remove what it wrote from all other zones?",
		tell: func(zone string, a map[string]any) string {
			return fmt.Sprintf("zone %s: deleted, and %v of its resources", zone, a["withdrawn"])
		},
	},
}

func zoneChanged(zone, state string, answer map[string]any) string {
	if answer["changed"] == true {
		return "zone " + zone + ": " + state
	}
	return "zone " + zone + ": was " + state + " already"
}

func newZoneDecision(c *cli, d zoneDecision) *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:               d.verb + " ZONE",
		Short:             d.short,
		Long:              d.long,
		Example:           "  causewayctl zone " + d.verb + " zone-1",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeName(resources.TypeZone, &scopeFlags{}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if d.question != "" && !yes {
				if err := c.operation(c.findZone)(cmd, args); err != nil {
					return err
				}
				if err := c.agree(fmt.Sprintf(d.question, args[0])); err != nil {
					return err
				}
			}
			return c.operation(func(ctx context.Context, client *api.Client, args []string) error {
				return c.decideZone(ctx, client, d, args[0])
			})(cmd, args)
		},
	}
	if d.question != "" {
		cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
		cmd.Example += "\n  causewayctl zone " + d.verb + " zone-1 --yes"
	}
	return cmd
}

// findZone checks that the zone exists before the user is asked about it.
func (c *cli) findZone(ctx context.Context, client *api.Client, args []string) error {
	err := client.JSON(ctx, api.Request{Path: zonePath(args[0], "_credentials")}, &enrolment.Credentials{})
	if api.IsNotFound(err) && !api.IsElsewhere(err) {
		return unknownZone(args[0], err)
	}
	if api.IsElsewhere(err) {
		return err
	}
	return nil // a caller who may not read may still be allowed to decide
}

func (c *cli) decideZone(ctx context.Context, client *api.Client, d zoneDecision, zone string) error {
	answer := map[string]any{}
	if err := c.orderZone(ctx, client, zone, "_"+d.verb, map[string]any{}, &answer); err != nil {
		return err
	}
	return c.printAnswer(answer, func() error {
		_, err := fmt.Fprintln(c.out, d.tell(zone, answer))
		return err
	})
}
