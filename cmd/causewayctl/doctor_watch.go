package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/api"
)

// doctorPause is the time between two examinations of doctor --watch.
const doctorPause = 10 * time.Second

// watchDoctor examines periodically, and prints the findings whenever they change. A server that does not respond is a
// finding, too.
func (c *cli) watchDoctor(ctx context.Context, client *api.Client, flags *doctorFlags) error {
	tick := time.NewTicker(doctorPause)
	defer tick.Stop()
	for before := ""; ; {
		now := c.examined(ctx, client, flags)
		if ctx.Err() != nil {
			return nil
		}
		if !sameFindings(now, before) {
			fmt.Fprintf(c.out, "%s\n%s\n", time.Now().Format(time.RFC3339), now)
			if err := c.said(nil); err != nil {
				return err
			}
		}
		before = now
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// measured matches durations, which differ at each measurement.
var measured = regexp.MustCompile(`[0-9.]+(ns|µs|ms|s)\b`)

// sameFindings reports whether two examinations found the same, apart from measured times.
func sameFindings(a, b string) bool {
	return measured.ReplaceAllString(a, "") == measured.ReplaceAllString(b, "")
}

// unexamined says why there are no findings: the server did not respond, or refused a request.
func (c *cli) unexamined(err error) string {
	var answer *api.Error
	if errors.As(err, &answer) {
		return "not examined, how it is is unknown: " + err.Error()
	}
	return "the server did not answer: " + explainTransport(c.address, c.kube.about(err)).Error()
}

// examined returns the findings of one examination as text.
func (c *cli) examined(ctx context.Context, client *api.Client, flags *doctorFlags) string {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	c.waiting = startProgress(c.errOut, "waiting for "+c.address)
	defer c.waiting.stop()
	found, err := c.diagnose(ctx, client, flags)
	if err != nil {
		return c.unexamined(err) + "\n"
	}
	var text strings.Builder
	if err := found.print(&text); err != nil {
		return err.Error() + "\n"
	}
	return text.String()
}
