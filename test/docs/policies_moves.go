package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// movesFile holds what TestWhatMovesListeners of zone/xds finds: lines of a change and the listeners that it replaces.
const movesFile = "zone/xds/testdata/moves.txt"

// movedListeners are kinds of listeners, as the table names them.
var movedListeners = map[string]string{
	"inbounds (HTTP)":        "HTTP inbounds",
	"inbounds (TCP)":         "TCP inbounds",
	"outbounds (HTTP)":       "HTTP outbounds",
	"causeway_metrics (own)": "that of the metrics, `causeway_metrics`",
	"causeway_capture (own)": "that of redirected connections, `causeway_capture`, by a filter chain for each match",
}

// writeMoves writes the table of the changes that replace a listener.
func writeMoves(b *strings.Builder, root string) error {
	raw, err := os.ReadFile(filepath.Join(root, movesFile)) //nolint:gosec // a file of the repository
	if err != nil {
		return err
	}
	b.WriteString(`
## What replaces a listener

A replaced listener costs what is open on the filter chains that differ. Requests go on: their connections are renewed between two requests. A stream, a
WebSocket or a TCP connection that is still open after the drain time (` + "`--drain-time-s`" + `, 30 s as these documents start Envoy) is cut. Other filter chains keep
theirs. ` + "`TestWhatAReplacedListenerCosts`" + ` shows it in a real Envoy. Connections of TCP that no such change concerns keep the log, routes and idle time with
which they began: ` + "`TestOpenConnectionsLastThroughPolicies`" + `. All changes that are not in this table, of all types, replace none (` + "`TestWhatMovesListeners`" + `,
` + "`TestOpenStreamsLastThroughPolicies`" + `), but those of a MeshProxyPatch, which says itself what it changes, and of gateways. [0075](../decisions/0075-no-last-filter-by-extension-discovery.md)
says why these do.

| type | in | a change of | replaces listeners of |
| --- | --- | --- | --- |
`)
	for line := range strings.Lines(string(raw)) {
		change, listeners, _ := strings.Cut(strings.TrimSpace(line), ": ")
		words := strings.SplitN(change, " ", 3)
		if len(words) != 3 {
			return fmt.Errorf("%s: %q is not a type, a list and a field", movesFile, line)
		}
		what := "`" + words[2] + "`"
		if words[2] == comesOrGoes {
			what = "the whole policy, which comes or goes"
		}
		var of []string
		for _, one := range strings.Split(listeners, ", ") {
			if movedListeners[one] == "" {
				return fmt.Errorf("%s: nobody knows what %q are", movesFile, one)
			}
			of = append(of, movedListeners[one])
		}
		fmt.Fprintf(b, "| %s | `%s` | %s | %s |\n", words[0], words[1], what, strings.Join(of, ", "))
	}
	return nil
}

// comesOrGoes is a change of a whole policy.
const comesOrGoes = "comes or goes"
