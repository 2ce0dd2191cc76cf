package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
)

func newZone(c *cli) *cobra.Command {
	group := newGroup("zone", "Register, revoke and delete zones",
		newZoneList(c), newZoneCreate(c), newZoneAdopt(c), newZoneToken(c), newZoneRename(c),
		newZoneAction(c, zoneAction{
			verb: "accept-deletes", path: acceptPath,
			short: "Accept removals that are held for an operator",
			long: "A peer whose list would remove more than half of the resources of a type, and more than ten, may\n" +
				"have lost its disk. The receiver holds such a removal, and causewayctl inspect sync shows it. The\n" +
				"receiver also holds every removal whose only reason is that the global's store was restored or\n" +
				"recreated. Send this command to the side that holds it.",
			done: "accepted the removal of", nothing: "no removal is held",
		}),
		newZoneAction(c, zoneAction{
			verb: "resync", path: "_resync",
			short: "Compare everything with a zone now, and send the differences",
			long:  "Resources that are equal on both sides are neither written nor sent.",
			done:  "compares", nothing: "it is not connected; it compares when it connects",
		}),
	)
	for _, d := range zoneDecisions {
		group.AddCommand(newZoneDecision(c, d))
	}
	return group
}

func newZoneList(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the zones, as causewayctl get zones",
		Long:    "Shows each zone: online or since when not, how far it is behind, what it refuses and what is held.",
		Example: "  causewayctl zone list\n  causewayctl zone list -o wide",
		Args:    cobra.NoArgs,
		RunE: c.operation(func(ctx context.Context, client *api.Client, _ []string) error {
			return c.get(ctx, client, &getFlags{}, []string{"zones"})
		}),
	}
}

// acceptPath is the route, below a zone's, that accepts held deletions.
const acceptPath = "_accept-deletes"

// zoneAction is a command that posts to one zone's session.
type zoneAction struct {
	verb, path, short, long string
	// done describes what happens to the types. nothing is the text if there are none.
	done, nothing string
}

func newZoneAction(c *cli, a zoneAction) *cobra.Command {
	typeName := ""
	cmd := &cobra.Command{
		Use:   a.verb + " ZONE",
		Short: a.short,
		Long:  a.long,
		Example: fmt.Sprintf("  causewayctl zone %s zone-1\n"+
			"  causewayctl zone %s zone-1 --type meshtrafficpermission", a.verb, a.verb),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeName(resources.TypeZone, &scopeFlags{}),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("type") && typeName == "" { // a script that has lost the type must not act on all
				return usagef("--type is empty: name a type, or leave it out for all types")
			}
			return nil
		},
		RunE: c.operation(func(ctx context.Context, client *api.Client, args []string) error {
			t, err := optionalType(typeName)
			if err != nil {
				return err
			}
			return c.actOnZone(ctx, client, a, args[0], t)
		}),
	}
	cmd.Flags().StringVar(&typeName, "type", "", "only this `type` of resources")
	c.completeZoneAndType(cmd)
	return cmd
}

func (c *cli) actOnZone(ctx context.Context, client *api.Client, a zoneAction, zone string, t resources.Type) error {
	body, err := json.Marshal(map[string]resources.Type{"type": t})
	if err != nil {
		return err
	}
	var answer tracker.Steered
	err = client.JSON(ctx, api.Request{Method: http.MethodPost, Path: zonePath(zone, a.path), Body: body}, &answer)
	if api.IsNotFound(err) {
		return unknownZone(zone, err)
	}
	if err != nil {
		return err
	}
	away := ""
	if len(answer.Types) == 0 && a.path == acceptPath {
		away = otherSideAway(ctx, client, zone)
	}
	return c.printAnswer(answer, func() error {
		_, err := fmt.Fprintf(c.out, "zone %s: %s%s\n", zone, a.outcome(&answer), away)
		return err
	})
}

// otherSideAway reports that, and since when, the answering server has no session with the other side, so that the
// deletions that either would hold on the next connection are unknown. It is empty while they are connected.
func otherSideAway(ctx context.Context, client *api.Client, zone string) string {
	session, err := fetchSession(ctx, client, zonePath(zone, "_sync"), resources.TypeMesh)
	if api.IsElsewhere(err) { // a zone reports its own session
		session, err = fetchSession(ctx, client, "/_sync", resources.TypeMesh)
	}
	switch {
	case err != nil:
		return " here; whether the other side is connected is unknown: " + err.Error()
	case session.Connected:
		return ""
	case session.Since.IsZero():
		return " here; the other side has not connected since the server started" + sinceText(session.Started) +
			": what it would remove is unknown"
	}
	return " here; the other side is offline since " + session.Since.UTC().Format(time.RFC3339) +
		": what it would remove is unknown"
}

// outcome returns the result on one line.
func (a *zoneAction) outcome(answer *tracker.Steered) string {
	if len(answer.Types) == 0 {
		return a.nothing
	}
	var names []string
	for _, one := range answer.Types {
		name := string(one.Type)
		if one.Count > 0 {
			name = fmt.Sprintf("%d %s", one.Count, one.Type)
		}
		names = append(names, name)
	}
	return a.done + " " + firstOf(names, 5)
}
