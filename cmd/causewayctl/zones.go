package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/systempb"
)

// connection reports whether the zone is connected, and since when. The global does not keep sessions over a restart,
// so it is unknown whether a zone without one had one before.
func (z *zoneOverview) connection() (state string, since time.Time) {
	all := z.Insight.Message.GetSubscriptions()
	if z.Unknown != nil && len(all) > 0 { // it was seen once
		return stateUnknown, z.Unknown.Since
	}
	return connectionState(all)
}

// latest returns the newest subscription, or nil if there is none.
func (z *zoneOverview) latest() *systempb.KDSSubscription {
	all := z.Insight.Message.GetSubscriptions()
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

func (z *zoneOverview) enabled() string {
	set := z.Zone.Message.GetEnabled()
	return strconv.FormatBool(set == nil || set.GetValue())
}

// connectionStatus is what `status.connection` of a Zone shows of its session, as the table does.
type connectionStatus struct {
	State string `json:"state"`
	// Since is nil if the zone was never seen.
	Since   *time.Time `json:"since,omitempty"`
	Version string     `json:"version,omitempty"`
}

// addConnections adds the state of their connections to the zones among items, for formats that print documents.
func (c *cli) addConnections(ctx context.Context, client *api.Client, items []*item) error {
	zones := slices.DeleteFunc(slices.Clone(items), func(it *item) bool { return it.Type != resources.TypeZone })
	if len(zones) == 0 || !c.output.document() {
		return nil
	}
	d, _ := resources.Lookup(resources.TypeZone)
	overviews, err := zoneOverviews(ctx, client, listQuery{descriptor: d})
	if err != nil {
		return err
	}
	for _, z := range zones {
		o := overviews[z.Name]
		if o == nil {
			o = &zoneOverview{Name: z.Name}
		}
		state, since := o.connection()
		shown := connectionStatus{State: state, Version: o.latest().GetVersion().GetKumaCp().GetVersion()}
		if !since.IsZero() {
			shown.Since = &since
		}
		if err := z.addStatus("connection", shown); err != nil {
			return fmt.Errorf("%s: %w", z.key(), err)
		}
	}
	return nil
}

// zoneOverviews reads what the global has seen of each zone, by the names of the zones.
func zoneOverviews(ctx context.Context, client *api.Client, q listQuery) (map[string]*zoneOverview, error) {
	all, err := listAll[zoneOverview](ctx, client, listPath(q.descriptor, "")+overviewSuffix, q)
	if err != nil {
		return nil, err
	}
	byName := map[string]*zoneOverview{}
	for _, o := range all {
		byName[o.Name] = o
	}
	return byName, nil
}

// printZones prints zones with the state of their connections, which only the global knows.
func (c *cli) printZones(ctx context.Context, client *api.Client, zones []*item, q listQuery) error {
	byName, err := zoneOverviews(ctx, client, q)
	if err != nil {
		return err
	}
	var sessions map[string]*syncSession
	if c.output == formatWide {
		if sessions, err = c.sessionsOf(ctx, client, zones); err != nil {
			return err
		}
	}
	if err := zoneTable(zones, byName, sessions, time.Now()).print(c.out); err != nil {
		return err
	}
	c.sayLeader(ctx, client)
	return nil
}

// sessionsOf reads the progress of each zone, if the server knows it.
func (c *cli) sessionsOf(ctx context.Context, client *api.Client, zones []*item) (map[string]*syncSession, error) {
	sessions := map[string]*syncSession{}
	for i, z := range zones {
		c.waiting.say("reading zone %d of %d", i+1, len(zones))
		s, err := fetchSession(ctx, client, zonePath(z.Name, "_sync"), "")
		switch {
		case api.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("zone %s: %w", z.Name, err)
		default:
			sessions[z.Name] = s
		}
	}
	return sessions, nil
}

// zoneTable returns a table of zones. It is wide if sessions is not nil.
func zoneTable(zones []*item, overviews map[string]*zoneOverview, sessions map[string]*syncSession,
	now time.Time) *table {
	wide := sessions != nil
	t := &table{header: []string{"NAME", "STATUS", "SINCE", "ENABLED", "VERSION", "AGE"}}
	if wide {
		t.header = append(t.header, "REPLICA", "SENT", "ACKNOWLEDGED", "REFUSED", "REVISIONS BEHIND", "LAG", "RESOURCES REFUSED",
			"HELD", "STORE", "KRI")
	}
	for _, z := range zones {
		o := overviews[z.Name]
		if o == nil {
			o = &zoneOverview{Name: z.Name}
		}
		state, since := o.connection()
		if isCloned(z) {
			state += ", two servers"
		}
		latest := o.latest()
		row := []string{z.Name, state, age(since, now), o.enabled(), latest.GetVersion().GetKumaCp().GetVersion(),
			age(z.CreationTime, now)}
		if wide {
			total := latest.GetStatus().GetTotal()
			row = append(row, latest.GetGlobalInstanceId(), number(total.GetResponsesSent()), number(total.GetResponsesAcknowledged()),
				number(total.GetResponsesRejected()))
			row = append(append(row, sessions[z.Name].summary()...), z.KRI)
		}
		t.add(row...)
	}
	return t
}

// isCloned reports whether two servers alternate as the zone.
func isCloned(zone *item) bool {
	conditions, err := conditionsOf(zone)
	return err == nil && slices.ContainsFunc(conditions, func(c resources.Condition) bool {
		return c.Type == resources.ConditionCloned && c.Status == resources.ConditionTrue
	})
}

// storeState reports whether the zone has accepted the global's store, as far as it has reported.
func (s *syncSession) storeState() string {
	switch {
	case s.NewStore != nil:
		return "new"
	case s.Reported.IsZero():
		return stateUnknown
	}
	return "known"
}

// orMore returns a known figure, marked as a minimum if the other side is not connected, or has not reported its own.
func orMore(known string, unknown bool) string {
	if unknown {
		return known + " or more"
	}
	return known
}

// summary returns the sum over all types as cells: revisions behind, lag, resources refused, deletions held, and the
// store. They are empty if the server does not report on sessions.
func (s *syncSession) summary() []string {
	switch {
	case s == nil:
		return make([]string, 5)
	case !s.Connected && s.Since.IsZero(): // no session since the server started
		return slices.Repeat([]string{stateUnknown}, 5)
	}
	unknown, behind, lag, refused, held := false, uint64(0), 0.0, 0, s.heldByZone()
	for i := range s.Types {
		t := &s.Types[i]
		unknown = unknown || t.LagUnknown
		behind, lag, refused = max(behind, t.LagRevisions), max(lag, t.LagSeconds), refused+len(t.Refused)
		if t.Held != nil {
			held += t.Held.Count
		}
	}
	return []string{orMore(number(behind), unknown), orMore(cmp.Or(lagText(lag), "0s"), unknown), strconv.Itoa(refused),
		orMore(strconv.Itoa(held), s.Reported.IsZero()), s.storeState()}
}
