package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/panics"
)

// panics reports the panics that the server recovered from. Each is a defect that a peer can reach.
func (e *examination) panics(ctx context.Context, client *api.Client, address string) {
	answer, err := client.Do(ctx, api.Request{Path: "/metrics"})
	if err != nil {
		e.unknown("panics", address, err, "")
		return
	}
	caught := panicsOf(string(answer))
	if len(caught) == 0 {
		e.note("panics", address, "none since the server started")
		return
	}
	for _, c := range caught {
		e.add(finding{
			findingProblem, "panics", c.serving, fmt.Sprintf("%s since the server started", c.count),
			"each ended the session of one peer, or one request: it is a defect of the server that somebody may be exploiting",
			"look for \"" + panics.Message + "\" in the server's log, which has the stack; report it as docs/security.md says",
		})
	}
}

// caughtPanics is one line of the metric.
type caughtPanics struct{ serving, count string }

// panicsOf returns the counters that are not zero.
func panicsOf(metrics string) (out []caughtPanics) {
	lines := bufio.NewScanner(strings.NewReader(metrics))
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), panics.Metric+`{serving="`)
		if !ok {
			continue
		}
		if serving, count, ok := strings.Cut(rest, `"} `); ok && count != "0" {
			out = append(out, caughtPanics{serving, count})
		}
	}
	return out
}
