package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
)

func newInspectSync(c *cli) *cobra.Command {
	var zone, typeName string
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Show the sync progress of each type between the global and its zones, and what was refused",
		Long: "The global shows all its zones, or the one that --zone names. A zone shows its own session with the global.\n" +
			"It shows what is wrong, or not known, and says that all is in sync only where both sides have told so.\n" +
			"-o wide and --type show all counts.",
		Example: "  causewayctl inspect sync\n" +
			"  causewayctl inspect sync --zone zone-1 --type meshtrafficpermission\n" +
			"  causewayctl inspect sync --address http://127.0.0.1:15681",
		Args: cobra.NoArgs,
		RunE: c.operation(func(ctx context.Context, client *api.Client, _ []string) error {
			t, err := optionalType(typeName)
			if err != nil {
				return err
			}
			sessions, own, err := c.fetchSessions(ctx, client, zone, t)
			if err != nil {
				return err
			}
			return c.printAnswer(map[string]any{"sessions": sessions}, func() error {
				return c.printSessions(c.out, sessions, own, t != "")
			})
		}),
	}
	f := cmd.Flags()
	f.StringVar(&zone, "zone", "", "only this `zone`; for the global")
	f.StringVar(&typeName, "type", "", "only this `type` of resources")
	c.completeZoneAndType(cmd)
	return cmd
}

// optionalType returns the type that a flag names, or an empty type if the flag is empty.
func optionalType(name string) (resources.Type, error) {
	if name == "" {
		return "", nil
	}
	d, err := lookupType(name)
	if err != nil {
		return "", err
	}
	return d.Type, nil
}

// completeZoneAndType completes the flags --zone and --type, if the command has them.
func (c *cli) completeZoneAndType(cmd *cobra.Command) {
	if cmd.Flags().Lookup("zone") != nil {
		_ = cmd.RegisterFlagCompletionFunc("zone", func(cmd *cobra.Command, _ []string, prefix string) ([]string,
			cobra.ShellCompDirective) {
			return c.completeName(resources.TypeZone, &scopeFlags{})(cmd, nil, prefix)
		})
	}
	if cmd.Flags().Lookup("type") != nil {
		_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(typePaths(), cobra.ShellCompDirectiveNoFileComp))
	}
}

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

// printSessions prints one table of what is not in sync, or of everything, and below it a line for each resource that
// does not cross.
func (c *cli) printSessions(w io.Writer, sessions []*syncSession, own, everything bool) error {
	everything = everything || c.output == formatWide
	t := &table{header: []string{"ZONE", "STATUS", "TYPE", "DIRECTION", "SENT", "ACKNOWLEDGED", "BEHIND", "LAG",
		"REFUSED", "HELD"}}
	var details []string
	synced := 0
	for _, s := range sessions {
		untold := s.untold(own)
		if s.inSync() && untold == "" {
			synced++
			if !everything {
				continue
			}
		}
		t.addSession(s, everything)
		details = append(details, s.details()...)
		if untold != "" {
			details = append(details, untold)
		}
	}
	if len(t.rows) > 0 {
		if err := t.print(w); err != nil {
			return err
		}
	}
	switch {
	case len(sessions) == 0:
		fmt.Fprintln(w, "no zone has joined yet")
	case synced == len(sessions) && !everything:
		fmt.Fprintf(w, "all in sync: %s online, nothing is refused or held\n", counted(synced, "zone"))
	case synced > 0 && !everything:
		details = append(details, fmt.Sprintf("%s online and in sync", counted(synced, "zone")))
	}
	if len(details) > 0 && len(t.rows) > 0 {
		fmt.Fprintln(w)
	}
	for _, line := range details {
		fmt.Fprintln(w, line)
	}
	return nil
}

// addSession adds a row for each type. A session without interesting types still gets a row.
func (t *table) addSession(s *syncSession, all bool) {
	state := stateOffline
	switch {
	case s.Connected:
		state = stateOnline
	case s.Unheard:
		state = stateUnknown
	case s.Since.IsZero():
		state = stateUnseen
	}
	before := len(t.rows)
	untold := map[string]int{} // types for which only the lag is unknown, by direction
	for i := range s.Types {
		if row := &s.Types[i]; isUntold(row) {
			untold[row.Direction]++
		}
	}
	for i := range s.Types {
		row := &s.Types[i]
		n := untold[row.Direction]
		if isQuiet(row) && !all || isUntold(row) && n == 0 {
			continue
		}
		if isUntold(row) && n > 1 && !all {
			t.add(s.Zone, state, fmt.Sprintf("%d types", n), row.Direction, "", "", stateUnknown, stateUnknown)
			untold[row.Direction] = 0
			continue
		}
		held := ""
		if row.Held != nil {
			held = strconv.Itoa(row.Held.Count)
		}
		behind, lag := number(row.LagRevisions), lagText(row.LagSeconds)
		if row.LagUnknown {
			behind, lag = stateUnknown, stateUnknown
		}
		t.add(s.Zone, state, string(row.Type), row.Direction, number(row.Sent), number(row.Acked), behind, lag,
			number(uint64(len(row.Refused))), held)
	}
	if len(t.rows) == before {
		t.add(s.Zone, state)
	}
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

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
