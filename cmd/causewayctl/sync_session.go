package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
)

// syncSession is the response of `_sync`: one zone's session, as the responding server sees it.
type syncSession tracker.SyncStatus

// replacedText describes what another store of the global replaced in a zone.
func replacedText(r *tracker.Replaced) string {
	text := fmt.Sprintf("since %s the global's store, which was restored, rolled back or recreated, replaced the content of %d resources here", r.Since.UTC().Format(time.RFC3339), r.Count)
	if len(r.Names) > 0 {
		text += ": " + firstOf(r.Names, 5)
	}
	return text
}

// refusalText returns a refusal in one line.
func refusalText(r *tracker.RefusedResource, t resources.Type) string {
	who := "the peer"
	if r.By == "self" {
		who = "this server"
	}
	return fmt.Sprintf("%s refused %s: %s", who, cmp.Or(r.KRI, string(t)+" "+r.Name), r.Reason)
}

// isQuiet reports whether the receiver is known to lack nothing of a type.
func isQuiet(t *tracker.TypeSync) bool {
	return !t.LagUnknown && t.LagRevisions == 0 && t.LagSeconds <= 0 && len(t.Refused) == 0 && t.Held == nil
}

// isUntold reports whether the receiver's lag, which is unknown, is the only problem with a type.
func isUntold(t *tracker.TypeSync) bool {
	return t.LagUnknown && len(t.Refused) == 0 && t.Held == nil
}

// inSync reports whether both sides are known to have everything of the other.
func (s *syncSession) inSync() bool {
	for i := range s.Types {
		if !isQuiet(&s.Types[i]) {
			return false
		}
	}
	return s.Connected && !s.Unheard && s.OutdatedSince.IsZero() && len(s.Types) > 0 && len(s.details()) == 0
}

// outdatedText says that a replica does not know what others wrote.
func (s *syncSession) outdatedText() string {
	return "what others wrote since " + s.OutdatedSince.UTC().Format(time.RFC3339) + " is unknown: " + s.WhyOutdated
}

// untold says what a global does not know about a connected zone that has not reported in this session.
func (s *syncSession) untold(own bool) string {
	if own || !s.Connected || !s.Reported.Before(s.Since) {
		return ""
	}
	return s.Zone + ": it has not reported in this session: what it refuses or holds is unknown"
}

// fetchSessions reads the session of one zone, or all sessions of a global, or the responding zone's own session.
func (c *cli) fetchSessions(ctx context.Context, client *api.Client, zone string, t resources.Type) (
	sessions []*syncSession, own bool, err error) {
	if zone != "" {
		s, err := fetchSession(ctx, client, zonePath(zone, "_sync"), t)
		if api.IsNotFound(err) {
			return nil, false, unknownZone(zone, err)
		}
		return []*syncSession{s}, false, err
	}
	mine, err := fetchSession(ctx, client, "/_sync", t)
	if err == nil {
		return []*syncSession{mine}, true, nil
	}
	if !api.IsNotFound(err) {
		return nil, false, err
	}
	d, _ := resources.Lookup(resources.TypeZone)
	zones, err := listItems(ctx, client, listQuery{descriptor: d})
	if err != nil {
		return nil, false, err
	}
	for i, z := range zones {
		c.waiting.say("reading zone %d of %d", i+1, len(zones))
		s, err := fetchSession(ctx, client, zonePath(z.Name, "_sync"), t)
		if err != nil {
			return nil, false, fmt.Errorf("zone %s: %w", z.Name, err)
		}
		sessions = append(sessions, s)
	}
	return sessions, false, nil
}

func zonePath(zone, below string) string { return "/zones/" + url.PathEscape(zone) + "/" + below }

func fetchSession(ctx context.Context, client *api.Client, path string, t resources.Type) (*syncSession, error) {
	query := url.Values{}
	if t != "" {
		query.Set("type", string(t))
	}
	raw, err := client.Do(ctx, api.Request{Path: path, Query: query})
	if err != nil {
		return nil, err
	}
	s := &syncSession{}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("%s: unexpected response: %w", path, err)
	}
	return s, nil
}

// lagText returns a lag in seconds as text, or an empty string if there is no lag.
func lagText(seconds float64) string {
	if seconds <= 0 {
		return ""
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond).String()
}

// details lists each refused resource with its reason, and each held deletion with advice.
func (s *syncSession) details() []string {
	lines := s.newStoreLines()
	if !s.OutdatedSince.IsZero() {
		lines = append(lines, s.Zone+": "+s.outdatedText())
	}
	if s.Replaced != nil {
		lines = append(lines, s.Zone+": "+replacedText(s.Replaced))
	}
	for i := range s.Types {
		t := &s.Types[i]
		for j := range t.Refused {
			lines = append(lines, fmt.Sprintf("%s %s: %s", s.Zone, t.Direction, refusalText(&t.Refused[j], t.Type)))
		}
		if len(t.Refused) > 0 {
			lines = append(lines, toDo(refusalAdvice))
		}
		if t.Held != nil {
			lines = append(lines, fmt.Sprintf("%s %s: the removal of %d %s is held (%s)", s.Zone, t.Direction,
				t.Held.Count, t.Type, firstOf(t.Held.Names, 3)), toDo(heldAdvice(s.Zone, string(t.Type))))
		}
	}
	return lines
}
