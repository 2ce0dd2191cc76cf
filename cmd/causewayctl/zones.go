package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
)

// overviewSuffix extends a list's path. Each item then includes the server's observations.
const overviewSuffix = "/_overview"

// zoneOverview is one item of /zones/_overview. Its counts are strings.
type zoneOverview struct {
	Name string `json:"name"`
	Zone struct {
		Enabled *bool `json:"enabled"`
	} `json:"zone"`
	Insight struct {
		Subscriptions []zoneSubscription `json:"subscriptions"`
	} `json:"zoneInsight"`
	// Unknown is set if the server does not know whether the zone is connected.
	Unknown *api.Unknown `json:"unknown"`
}

type zoneSubscription struct {
	subscription
	Replica string `json:"globalInstanceId"`
	Status  struct {
		Total struct {
			Sent         string `json:"responsesSent"`
			Acknowledged string `json:"responsesAcknowledged"`
			Rejected     string `json:"responsesRejected"`
		} `json:"total"`
	} `json:"status"`
	Version struct {
		ControlPlane struct {
			Version string `json:"version"`
		} `json:"kumaCp"`
	} `json:"version"`
}

// connection reports whether the zone is connected, and since when. The global does not keep sessions over a restart,
// so whether a zone without one had a session before is unknown.
func (z *zoneOverview) connection() (state string, since time.Time) {
	if z.Unknown != nil && len(z.Insight.Subscriptions) > 0 { // it was seen once
		return stateUnknown, z.Unknown.Since
	}
	var all []subscription
	for _, s := range z.Insight.Subscriptions {
		all = append(all, s.subscription)
	}
	if len(all) == 0 {
		return stateUnseen, time.Time{}
	}
	return connectionState(all)
}

// latest returns the newest subscription, or a zero one if there is none.
func (z *zoneOverview) latest() zoneSubscription {
	if n := len(z.Insight.Subscriptions); n > 0 {
		return z.Insight.Subscriptions[n-1]
	}
	return zoneSubscription{}
}

func (z *zoneOverview) enabled() string {
	return strconv.FormatBool(z.Zone.Enabled == nil || *z.Zone.Enabled)
}

// printZones prints zones with the state of their connections, which only the global knows.
func (c *cli) printZones(ctx context.Context, client *api.Client, zones []*item, q listQuery) error {
	overviews, err := listAll[zoneOverview](ctx, client, listPath(q.descriptor, "")+overviewSuffix, q)
	if err != nil {
		return err
	}
	byName := map[string]*zoneOverview{}
	for _, o := range overviews {
		byName[o.Name] = o
	}
	var sessions map[string]*syncSession
	if c.output == formatWide {
		if sessions, err = c.sessionsOf(ctx, client, zones); err != nil {
			return err
		}
	}
	return zoneTable(zones, byName, sessions, time.Now()).print(c.out)
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
		t.header = append(t.header, "REPLICA", "SENT", "ACKNOWLEDGED", "REFUSED", "BEHIND", "LAG", "RESOURCES REFUSED",
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
		row := []string{z.Name, state, age(since, now), o.enabled(), latest.Version.ControlPlane.Version,
			age(z.CreationTime, now)}
		if wide {
			total := latest.Status.Total
			row = append(row, latest.Replica, count(total.Sent), count(total.Acknowledged), count(total.Rejected))
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

// count returns n, or 0 if n was omitted because it is zero.
func count(n string) string {
	if n == "" {
		return "0"
	}
	return n
}

// storeState reports whether the zone has accepted the global's store, as far as it has told.
func (s *syncSession) storeState() string {
	switch {
	case s.NewStore != nil:
		return "new"
	case s.Reported.IsZero():
		return stateUnknown
	}
	return "known"
}

// orMore returns a known figure, marked as a minimum if the other side is not connected, or has not told its own.
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
