package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/printing"
	"github.com/causeway-mesh/causeway/resources"
)

// The events of a watch.
const (
	eventAdded   = "added"
	eventChanged = "changed"
	eventRemoved = "removed"
)

// watchTimeout is the minimum timeout of a watch request: the server waits 20 s for a change.
const watchTimeout = 30 * time.Second

// watchPause is the pause between a response and the next request, so that many changes at once need few responses.
const watchPause = 100 * time.Millisecond

// watched is a list of resources under watch.
type watched struct {
	cli      *cli
	client   *api.Client
	query    listQuery
	selector selector
	names    []string
	// revision is that of the last response; known holds the resources in it.
	revision uint64
	known    map[resources.Key]*item
}

// checkWatch refuses what a watch cannot do.
func (c *cli) checkWatch(flags *getFlags, args []string) error {
	switch {
	case isKRI(args[0]):
		return usagef("--watch follows a type: give TYPE, or TYPE and names")
	case slices.Contains(replicaNames(), args[0]):
		return usagef("replicas are not resources: --watch does not apply to them")
	case flags.sortBy != "":
		return usagef("--watch prints changes as they come: leave out --sort-by")
	case c.output.onlyOfGet() && c.output != formatName || c.output == formatYAML:
		return usagef("--watch prints -o table, name or json")
	}
	return nil
}

// watch prints the resources of a type, and then each change, until it is interrupted.
func (c *cli) watch(ctx context.Context, client *api.Client, flags *getFlags, args []string) error {
	d, err := lookupType(args[0])
	if err != nil {
		return err
	}
	q := flags.query(d)
	q.labels, q.explicit = nil, flags.explicit // a resource that loses a label must be seen leaving
	if flags.allMeshes {
		q.mesh = ""
	}
	w := &watched{cli: c, client: client, query: q, selector: flags.selector, names: args[1:],
		known: map[resources.Key]*item{}}
	for failures := 0; ; {
		pause := watchPause
		switch err := w.next(ctx); {
		case err == nil:
			failures = 0
		case ctx.Err() != nil:
			return nil
		case w.revision == 0 || !passes(err) || c.said(nil) != nil: // without output there is nothing to request
			return err
		default:
			pause = min(time.Second<<min(failures, 10), watchTimeout)
			failures++
			fmt.Fprintf(c.errOut, "asking %s again in %s: %v\n", c.address, pause, c.kube.about(err))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// passes reports whether a failure may be temporary: the server was not there, or had no room.
func passes(err error) bool {
	var answer *api.Error
	return !errors.As(err, &answer) || answer.Status >= http.StatusInternalServerError ||
		answer.Status == http.StatusTooManyRequests
}

// next waits for the next response and prints the differences.
func (w *watched) next(ctx context.Context) error {
	items, changed, err := w.read(ctx)
	if err != nil || !changed {
		return err
	}
	now := map[resources.Key]*item{}
	for _, it := range items {
		if w.selector.matches(it.Labels) && (len(w.names) == 0 || slices.Contains(w.names, it.Name)) {
			now[it.key()] = it
		}
	}
	for _, it := range items {
		before, was := w.known[it.key()]
		switch {
		case now[it.key()] == nil:
		case !was:
			err = w.print(eventAdded, it)
		case before.written() != it.written():
			err = w.print(eventChanged, it)
		}
		if err != nil {
			return err
		}
	}
	for _, it := range slices.SortedFunc(maps.Values(w.known), func(a, b *item) int {
		return strings.Compare(a.key().String(), b.key().String())
	}) {
		if now[it.key()] == nil {
			if err := w.print(eventRemoved, it); err != nil {
				return err
			}
		}
	}
	w.known = now
	return w.cli.said(nil)
}

// read returns the whole list once it has changed since the last response. changed is false if it has not for a while.
func (w *watched) read(ctx context.Context) (items []*item, changed bool, err error) {
	query := w.query.values("")
	query.Set("watch", strconv.FormatUint(w.revision, 10))
	raw, err := w.client.Do(ctx, api.Request{Path: listPath(w.query.descriptor, w.query.mesh), Query: query})
	if err != nil || len(raw) == 0 {
		return nil, false, err
	}
	var page struct {
		Items    []*item `json:"items"`
		Next     *string `json:"next"`
		Revision *uint64 `json:"revision"`
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return nil, false, fmt.Errorf("unexpected response: %w", err)
	}
	if page.Revision == nil {
		return nil, false, failed(errors.New("the server has no watch: its version is older"))
	}
	items = page.Items
	if page.Next != nil { // changes between the pages are after the revision of the first
		if items, err = listItems(ctx, w.client, w.query); err != nil {
			return nil, false, err
		}
	}
	w.revision = *page.Revision
	return items, true, nil
}

// print prints one event as a line, or as an object.
func (w *watched) print(event string, it *item) error {
	out := w.cli.out
	switch w.cli.output {
	case formatJSON:
		return printJSON(out, struct {
			Event string          `json:"event"`
			Item  json.RawMessage `json:"item"`
		}{event, it.whole})
	case formatName:
		_, err := fmt.Fprintf(out, "%-8s %s\n", event, printing.Line(it.KRI))
		return err
	}
	row := []string{fmt.Sprintf("%-8s", event), string(it.Type), place(it.key())}
	if w.query.descriptor.Policy != nil && event != eventRemoved {
		row = append(row, targetText(it.Spec.TargetRef), it.Labels[resources.LabelPolicyRole])
	}
	row = append(row, it.origin(), it.ModificationTime.UTC().Format(time.RFC3339))
	_, err := fmt.Fprintln(out, printing.Line(strings.Join(row, "  ")))
	return err
}
