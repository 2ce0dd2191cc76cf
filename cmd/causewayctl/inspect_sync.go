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

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/api"
)

func newInspectSync(c *cli) *cobra.Command {
	var zone, typeName string
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Show the sync progress of each type between the global and its zones, and what was refused",
		Long: "Asked of the global: all its zones, or the one that --zone names. Asked of a zone: its own session with the global.\n" +
			"-o wide also shows types without anything to report.",
		Example: "  causewayctl inspect sync\n" +
			"  causewayctl inspect sync --zone zone-1 --type meshtrafficpermission\n" +
			"  causewayctl inspect sync --address http://127.0.0.1:15681",
		Args: cobra.NoArgs,
		RunE: c.operation(func(ctx context.Context, client *api.Client, _ []string) error {
			t, err := optionalType(typeName)
			if err != nil {
				return err
			}
			sessions, err := c.fetchSessions(ctx, client, zone, t)
			if err != nil {
				return err
			}
			return c.printAnswer(map[string]any{"sessions": sessions}, func() error {
				return c.printSessions(c.out, sessions)
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

// syncSession is the answer of `_sync`: one zone's session, in the view of the server that answers.
type syncSession struct {
	Zone      string    `json:"zone"`
	Connected bool      `json:"connected"`
	Since     time.Time `json:"since,omitzero"`
	Unheard   bool      `json:"unheard,omitempty"`
	// Started is when the server that answers started to observe; Reported is when the zone last reported on its
	// proxies.
	Started  time.Time  `json:"started,omitzero"`
	Reported time.Time  `json:"reported,omitzero"`
	Types    []syncType `json:"types"`
	// NewStore, NewZoneStore, Replaced and HeldByZone are the fields of kds.SyncStatus.
	NewStore     *newStore        `json:"newStore,omitempty"`
	NewZoneStore *newStore        `json:"newZoneStore,omitempty"`
	Replaced     *replacedContent `json:"replaced,omitempty"`
	// Over are the limits that the zone has reached.
	Over       []overLimit            `json:"over,omitempty"`
	HeldByZone map[resources.Type]int `json:"heldByZone,omitempty"`
}

// replacedContent is kds.Replaced.
type replacedContent struct {
	Count int       `json:"count"`
	Since time.Time `json:"since"`
	Names []string  `json:"names,omitempty"`
}

// String describes what was replaced.
func (r *replacedContent) String() string {
	text := fmt.Sprintf("since %s the global's store, which was restored, rolled back or begun anew, has replaced the content of %d resources here", r.Since.UTC().Format(time.RFC3339), r.Count)
	if len(r.Names) > 0 {
		text += ": " + firstOf(r.Names, 5)
	}
	return text
}

// overLimit is kds.OverLimit.
type overLimit struct {
	Limit string         `json:"limit"`
	Type  resources.Type `json:"type,omitempty"`
	Most  int64          `json:"most"`
	Count int            `json:"count"`
	Since time.Time      `json:"since"`
}

// syncType is one type in one direction.
type syncType struct {
	Type resources.Type `json:"type"`
	// Direction is toZone or toGlobal.
	Direction string `json:"direction"`
	// Revision is the newest that concerns the type; Acknowledged is the peer's.
	Revision     uint64  `json:"revision"`
	Acknowledged uint64  `json:"acknowledged"`
	LagRevisions uint64  `json:"lagRevisions"`
	LagSeconds   float64 `json:"lagSeconds"`
	// LagUnknown reports that the sender is not connected, or does not say its revisions.
	LagUnknown bool             `json:"lagUnknown,omitempty"`
	Sent       uint64           `json:"sent"`
	Acked      uint64           `json:"acked"`
	Refused    []syncRefusal    `json:"refused,omitempty"`
	Held       *syncHeldRemoval `json:"held,omitempty"`
}

type syncRefusal struct {
	KRI    string    `json:"kri"`
	Name   string    `json:"name"`
	Reason string    `json:"reason"`
	Since  time.Time `json:"since,omitzero"`
	// By is self if the server that answers refused, otherwise peer.
	By string `json:"by,omitempty"`
}

// text returns the refusal in one line.
func (r *syncRefusal) text(t resources.Type) string {
	who := "the peer"
	if r.By == "self" {
		who = "this server"
	}
	return fmt.Sprintf("%s refused %s: %s", who, cmp.Or(r.KRI, string(t)+" "+r.Name), r.Reason)
}

// syncHeldRemoval is a held deletion: it would remove most of a type and waits for an operator.
type syncHeldRemoval struct {
	Count int       `json:"count"`
	Since time.Time `json:"since,omitzero"`
	Names []string  `json:"names,omitempty"`
}

// quiet reports whether the type has nothing of interest for a person.
func (t *syncType) quiet() bool {
	return t.Sent == 0 && t.Acked == 0 && t.LagRevisions == 0 && len(t.Refused) == 0 && t.Held == nil
}

// fetchSessions reads the session of one zone, or all sessions of a global, or the session of the zone that answers.
func (c *cli) fetchSessions(ctx context.Context, client *api.Client, zone string, t resources.Type) ([]*syncSession,
	error) {
	if zone != "" {
		s, err := fetchSession(ctx, client, zonePath(zone, "_sync"), t)
		if api.IsNotFound(err) {
			return nil, unknownZone(zone, err)
		}
		return []*syncSession{s}, err
	}
	own, err := fetchSession(ctx, client, "/_sync", t)
	if err == nil {
		return []*syncSession{own}, nil
	}
	if !api.IsNotFound(err) {
		return nil, err
	}
	d, _ := resources.Lookup(resources.TypeZone)
	zones, err := listItems(ctx, client, listQuery{descriptor: d})
	if err != nil {
		return nil, err
	}
	var sessions []*syncSession
	for i, z := range zones {
		c.waiting.say("reading zone %d of %d", i+1, len(zones))
		s, err := fetchSession(ctx, client, zonePath(z.Name, "_sync"), t)
		if err != nil {
			return nil, fmt.Errorf("zone %s: %w", z.Name, err)
		}
		sessions = append(sessions, s)
	}
	return sessions, nil
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
		return nil, fmt.Errorf("%s: the answer is not what was expected: %w", path, err)
	}
	return s, nil
}

// printSessions prints one table, and below it a line for each resource that does not cross.
func (c *cli) printSessions(w io.Writer, sessions []*syncSession) error {
	t := &table{header: []string{"ZONE", "STATUS", "TYPE", "DIRECTION", "SENT", "ACKNOWLEDGED", "BEHIND", "LAG",
		"REFUSED", "HELD"}}
	var details []string
	for _, s := range sessions {
		t.addSession(s, c.output == formatWide)
		details = append(details, s.details()...)
	}
	if err := t.print(w); err != nil {
		return err
	}
	if len(details) > 0 {
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
	for i := range s.Types {
		row := &s.Types[i]
		if row.quiet() && !all {
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
	if s.Replaced != nil {
		lines = append(lines, s.Zone+": "+s.Replaced.String())
	}
	for i := range s.Types {
		t := &s.Types[i]
		for j := range t.Refused {
			lines = append(lines, fmt.Sprintf("%s %s: %s", s.Zone, t.Direction, t.Refused[j].text(t.Type)))
		}
		if t.Held != nil {
			lines = append(lines, fmt.Sprintf(
				"%s %s: held is the removal of %d %s (%s): causewayctl zone accept-deletes %s --type %s lets it go on",
				s.Zone, t.Direction, t.Held.Count, t.Type, firstOf(t.Held.Names, 3), s.Zone, t.Type))
		}
	}
	return lines
}
