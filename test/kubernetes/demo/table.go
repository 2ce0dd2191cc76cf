package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// row is a line of the table.
type row struct {
	title, what, want, got string
	// note is who decided, or what a condition says.
	note string
}

func (r *row) ok() bool { return r.want == r.got }

func printRows(w io.Writer, rows []row) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "STORY\tWHAT\tEXPECTED\tGOT\t\tDECIDED BY, OR WHAT THE CONDITION SAYS")
	last := ""
	for i := range rows {
		r := &rows[i]
		title := r.title
		if title == last {
			title = ""
		}
		last = r.title
		mark := "ok"
		if !r.ok() {
			mark = "NO"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", title, r.what, r.want, r.got, mark, r.note)
	}
	_ = t.Flush()
}
