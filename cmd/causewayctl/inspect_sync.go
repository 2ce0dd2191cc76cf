package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

func newInspectSync(c *cli) *cobra.Command {
	var zone, typeName string
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Show the sync progress and refusals of each type between the global and its zones",
		Long: "The global shows all its zones, or the one that --zone names. A zone shows its own session with the global.\n" +
			"It shows what is wrong, or not known, and says that all is in sync only where both sides have told so.\n" +
			"-o wide and --type show all counts. REVISIONS BEHIND counts revisions of the sender's store since the last one that\n" +
			"was acknowledged of the type. Writes of all types make revisions, so one resource may be many behind.",
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

// printSessions prints one table of what is not in sync, or of everything, and below it a line for each resource that
// does not cross.
func (c *cli) printSessions(w io.Writer, sessions []*syncSession, own, everything bool) error {
	everything = everything || c.output == formatWide
	t := &table{header: []string{"ZONE", "STATUS", "TYPE", "DIRECTION", "SENT", "ACKNOWLEDGED", "REVISIONS BEHIND", "LAG",
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
