package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/printing"
	"github.com/causeway-mesh/causeway/resources"
)

// nobodyAsked says that the list is empty, as far as the responding server knows.
func nobodyAsked(a *enrolment.Candidates) string {
	text := "this server rejected no server with a certificate of the global's zone CA" +
		" since " + a.Since.UTC().Format(time.RFC3339)
	if a.Since.IsZero() {
		text = "this server knows of none that it rejected"
	}
	return text + othersAsked(a)
}

// othersAsked says what the list lacks, or "" if nothing is known to be missing.
func othersAsked(a *enrolment.Candidates) string {
	text := ""
	if a.LeftOut > 0 {
		text = fmt.Sprintf("; %d more are of zones that you may not read", a.LeftOut)
	}
	if a.Others > 0 {
		text += fmt.Sprintf("; only the %d other replicas know what they rejected: ask them too, with --address", a.Others)
	}
	return text
}

func newZoneAdopt(c *cli) *cobra.Command {
	id := ""
	cmd := &cobra.Command{
		Use:   "adopt [ZONE...]",
		Short: "Readmit zones whose certificates a restored or rebuilt global does not know",
		Long: "A global whose store was restored from a backup, or recreated beside the old kds-tls folder, does\n" +
			"not know later zones and certificates. It refuses their servers, which retry. Without a name, the\n" +
			"command lists the servers that tried in the last ten minutes with a certificate of the global's own\n" +
			"zone CA; with names, it registers these zones and admits their servers without a join string. It\n" +
			"does not admit a certificate that is older than a revocation in the store. The global does not know\n" +
			"revocations that the store has lost, so check the list.",
		Example: "  causewayctl zone adopt\n" +
			"  causewayctl zone adopt zone-1 zone-2\n" +
			"  causewayctl zone adopt zone-1 --id 5e0c3a0e-6c7e-4b6e-9d1e-8d6a5b0f5b44   # one of two servers",
		RunE: func(cmd *cobra.Command, args []string) error {
			if id != "" && len(args) != 1 {
				return usagef("--id is about one zone: name it, and no other")
			}
			return c.operation(func(ctx context.Context, client *api.Client, args []string) error {
				if len(args) == 0 {
					return c.listAdoptable(ctx, client)
				}
				return c.adoptZones(ctx, client, args, id)
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "the `id` of the intended server, if several ask or another has joined before")
	return cmd
}

func (c *cli) listAdoptable(ctx context.Context, client *api.Client) error {
	var answer enrolment.Candidates
	if err := client.JSON(ctx, api.Request{Path: "/_adoptions"}, &answer); err != nil {
		return err
	}
	return c.printAnswer(answer, func() error {
		if len(answer.Items) == 0 {
			_, err := fmt.Fprintln(c.out, nobodyAsked(&answer))
			return err
		}
		if missing := othersAsked(&answer); missing != "" {
			defer func() { _, _ = fmt.Fprintln(c.errOut, strings.TrimPrefix(missing, "; ")) }()
		}
		t := &table{header: []string{"ZONE", "ID", "CERTIFICATE", "ISSUED", "EXPIRES", "SEEN"}}
		now := time.Now()
		for _, a := range answer.Items {
			t.add(a.Zone, a.ID, a.Serial, age(a.Issued, now), a.Expires.Format(time.DateOnly), age(a.Seen, now))
		}
		return t.print(c.out)
	})
}

func (c *cli) adoptZones(ctx context.Context, client *api.Client, zones []string, id string) error {
	adopted := []enrolment.Candidate{}
	for _, zone := range zones {
		one := enrolment.Candidate{}
		if err := c.orderZone(ctx, client, zone, "_adopt", enrolment.AdoptOrder{ID: id}, &one); err != nil {
			return c.neverAsked(ctx, client, zone, err)
		}
		adopted = append(adopted, one)
	}
	return c.printAnswer(map[string]any{"items": adopted}, func() error {
		for _, one := range adopted {
			if _, err := fmt.Fprintf(c.out, "zone %s: adopted, with the certificate %s of server %s\n", one.Zone,
				one.Serial, one.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// neverAsked turns err, from adopting a zone, into an error about an unknown name if neither a zone nor a server that
// waits for adoption has it.
func (c *cli) neverAsked(ctx context.Context, client *api.Client, zone string, err error) error {
	var asking enrolment.Candidates
	if client.JSON(ctx, api.Request{Path: "/_adoptions"}, &asking) != nil {
		return err
	}
	asks := slices.ContainsFunc(asking.Items, func(a enrolment.Candidate) bool { return a.Zone == zone })
	if asks || !api.IsNotFound(fetch(ctx, client, resources.Key{Type: resources.TypeZone, Name: zone}, "", &item{})) {
		return err
	}
	var names []string
	for _, a := range asking.Items {
		names = append(names, printing.Line(a.Zone))
	}
	advice := "causewayctl zone adopt, without a name, lists the servers that ask"
	if near := nearestTo(zone, slices.Compact(names)); len(near) > 0 {
		advice = "the nearest here: " + strings.Join(near, ", ") + "\n  " + advice
	}
	return unknown(resources.Key{Type: resources.TypeZone, Name: zone}, &advised{
		fmt.Errorf("there is no zone %s, and no server has asked this one to be it%s", zone, othersAsked(&asking)), advice})
}

// newStoreLines describe what a zone holds that met another store of the global, and what the global holds that met
// another store of a zone.
func (s *syncSession) newStoreLines() []string {
	var lines []string
	if s.NewZoneStore != nil {
		lines = append(lines, fmt.Sprintf("%s: the global removes nothing for what the zone's store lacks, because that is not the one that it knew (restored or recreated: %s, and was %s); "+
			"apply to the zone again what is missing, as causewayctl get shows it here, or let it go: causewayctl zone accept-deletes %s", s.Zone, s.NewZoneStore.Announced, s.NewZoneStore.Known, s.Zone))
	}
	if s.NewStore == nil && len(s.HeldByZone) == 0 {
		return lines
	}
	held := s.heldByZone()
	for i := range s.Types {
		if s.Types[i].Direction == "toZone" && s.Types[i].Held != nil {
			held += s.Types[i].Held.Count
		}
	}
	why := ""
	if s.NewStore != nil {
		why = fmt.Sprintf(", because the global's store is not the one it knew (restored, rolled back or recreated: %s, and was %s)", s.NewStore.Announced, s.NewStore.Known)
	}
	return append(lines, fmt.Sprintf("%s: the zone holds removals (%d)%s; give the global back what is missing, or ask the zone: causewayctl zone accept-deletes %s --address ZONE",
		s.Zone, held, why, s.Zone))
}

// heldByZone returns the sum of the held deletions that the zone reported to the global.
func (s *syncSession) heldByZone() int {
	n := 0
	for _, one := range s.HeldByZone {
		n += one
	}
	return n
}
