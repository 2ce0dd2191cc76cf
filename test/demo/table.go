package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// mark returns the end of a row.
func mark(ok bool) string {
	if ok {
		return "ok"
	}
	return "NOT AS EXPECTED"
}

func printRows(w io.Writer, rows []row) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "STORY\tWHO\tCALLED\tEXPECTED\tGOT\tDECIDED BY (says the Envoy)\t")
	last := ""
	for _, r := range rows {
		title := r.story
		if title == last {
			title = ""
		}
		last = r.story
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", title, r.who, r.called, r.want, r.got, r.by, mark(r.ok))
	}
	_ = t.Flush()
}

func printDeliveries(w io.Writer, deliveries []delivery) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WRITTEN IN ZONE-1\tROLE\tSERVER\tEXPECTED\tFOUND AS\t")
	for _, c := range deliveries {
		policy, role := c.policy, c.role
		for _, s := range c.where {
			found, want := s.name, "there"
			if found == "" {
				found = "not there"
			}
			if !s.want {
				want = "not there"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", policy, role, s.server, want, found, mark(s.ok()))
			policy, role = "", ""
		}
	}
	_ = t.Flush()
}

func printCalls(w io.Writer, calls []crossCall) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ZONE-2 CALLS LOCALHOST, ZONE-1 ANSWERS\tWHO\tPATH\tEXPECTED\tGOT\tAFTER\t")
	for _, c := range calls {
		got := fmt.Sprint(c.got)
		if c.err != nil {
			got = c.err.Error()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", c.why, c.from, c.path, c.status, got, milliseconds(c.took),
			mark(c.ok()))
	}
	_ = t.Flush()
}

func printOwned(w io.Writer, all []owned) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "THE OWNER OF SHOP WRITES\tAND SEES\t")
	for i := range all {
		o := &all[i]
		seen := o.does
		if o.err != nil {
			seen += ": " + o.err.Error()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", o.typ, seen, mark(o.err == nil))
	}
	_ = t.Flush()
}

func printChanges(w io.Writer, changes []change) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CHANGED ON THE GLOBAL, UNDER REQUESTS\tENFORCED IN ZONE-1\tENFORCED IN ZONE-2")
	for _, c := range changes {
		fmt.Fprintf(t, "%s\tafter %s\tafter %s\n", c.what, milliseconds(c.after[zone1]), milliseconds(c.after[zone2]))
	}
	_ = t.Flush()
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
