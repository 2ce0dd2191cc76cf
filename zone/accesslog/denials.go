package accesslog

import (
	"cmp"
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
)

// Limits of a report of denials.
const (
	defaultDenials = 100
	maxDenials     = 10_000
)

// denialQuery selects denials. Empty fields select everything.
type denialQuery struct {
	mesh string
	// since selects denials that last occurred at or after this time.
	since time.Time
	// size is the maximum number of items.
	size   int
	reader *api.Reader
}

func (q *denialQuery) selects(e *Entry) bool {
	if e.Allowed || e.Last.Before(q.since) {
		return false
	}
	kri, err := resources.ParseKRI(e.Inbound)
	return q.mesh == "" || err == nil && kri.Mesh == q.mesh
}

// denials returns the denials in a journal: the most recent first, one item for each path where paths are known.
func denials(j *Journal, q denialQuery) *api.DenialReport {
	s := j.read(q.selects)
	out := &api.DenialReport{Items: []api.Denial{}, Dropped: s.dropped, Since: later(q.since, s.since).UTC()}
	for i := range s.entries {
		e := &s.entries[i]
		if !shows(q.reader, e.Inbound) {
			out.LeftOut++
			continue
		}
		of := api.Denial{Client: e.Client, Inbound: e.Inbound, Method: e.Method, Policy: e.Policy}
		if _, err := resources.ParseKRI(e.Policy); err == nil && !shows(q.reader, e.Policy) {
			of.Policy = hiddenPolicy
			out.LeftOut++
		}
		out.Items = append(out.Items, itemsOf(e, of, q.since)...)
	}
	slices.SortStableFunc(out.Items, func(a, b api.Denial) int { return b.LastSeen.Compare(a.LastSeen) })
	if len(out.Items) > q.size {
		out.More = len(out.Items) - q.size
		out.Items = out.Items[:q.size]
	}
	return out
}

// itemsOf returns a copy of of for each path of an entry that was seen since, and for the first segment of paths that
// were not kept.
func itemsOf(e *Entry, of api.Denial, since time.Time) []api.Denial {
	if e.Method == "" {
		of.Count, of.LastSeen = e.Count, e.Last.UTC()
		return []api.Denial{of}
	}
	var out []api.Denial
	for path, seen := range e.paths {
		if !seen.last.Before(since) {
			one := of
			one.Path, one.Count, one.LastSeen = path, seen.count, seen.last.UTC()
			out = append(out, one)
		}
	}
	slices.SortFunc(out, func(a, b api.Denial) int { return cmp.Compare(a.Path, b.Path) })
	if e.elsewhere > 0 {
		of.PathPrefix, of.Count, of.LastSeen = e.PathPrefix, e.elsewhere, e.Last.UTC()
		out = append(out, of)
	}
	return out
}
