package xds

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// refusal is a proxy's reason for refusing a resource, and when it first refused it.
type refusal struct {
	reason string
	since  time.Time
}

// refusals holds what a stream's proxy refuses, by the resource's name. A response without resources has the empty
// name. An entry stays until the proxy accepts the resource or no longer needs it; accepting other resources proves
// nothing.
type refusals map[string]refusal

// acknowledged notes an ACK of a response with these resources, or of all resources of the kind, and reports whether
// that ends a problem.
func (r *record) acknowledged(s *subscription, k kind, of answer, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.stats[k].acknowledged++
	s.updated = now
	before := len(s.refused[k])
	if of.whole {
		s.refused[k] = nil
	}
	delete(s.refused[k], "")
	for _, one := range of.resources {
		delete(s.refused[k], one.GetName())
	}
	ended := len(s.refused[k]) < before
	if _, over := r.problems[problemLimits]; over && r.openLocked() < maxProxyStreams {
		delete(r.problems, problemLimits)
		ended = true
	}
	return ended
}

// rejected notes that a proxy refused a response. Each of several resources in it may be the reason, until the proxy
// accepts it alone.
func (r *record) rejected(s *subscription, k kind, of answer, reason string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.stats[k].rejected++
	s.updated = now
	if s.refused[k] == nil {
		s.refused[k] = refusals{}
	}
	note := func(name string) {
		since := now
		if before, again := s.refused[k][name]; again {
			since = before.since
		}
		s.refused[k][name] = refusal{shorten(reason), since}
	}
	if len(of.resources) == 0 {
		note("")
	}
	for _, one := range of.resources {
		note(one.GetName())
	}
}

// dropRefusals drops the refusals of resources that the proxy no longer needs, and reports whether there were any.
func (r *record) dropRefusals(s *subscription, k kind, want set) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(s.refused[k])
	maps.DeleteFunc(s.refused[k], func(name string, _ refusal) bool { return name != "" && want.get(name) == nil })
	return len(s.refused[k]) < before
}

// refusesLocked returns the refusals of a kind as text: those of its open streams, or of the last one if none is open.
// r.mu is held.
func (r *record) refusesLocked(k kind) string {
	var all refusals
	for i, s := range r.subscriptions {
		if len(s.refused[k]) > 0 && (s.ended.IsZero() || i == len(r.subscriptions)-1 && all == nil) {
			if all == nil {
				all = refusals{}
			}
			maps.Copy(all, s.refused[k])
		}
	}
	return all.text(k)
}

// problemsLocked returns the record's problems by source, including refusals. r.mu is held.
func (r *record) problemsLocked() map[string]string {
	out := maps.Clone(r.problems)
	for k := range kinds {
		if text := r.refusesLocked(k); text != "" {
			if out == nil {
				out = map[string]string{}
			}
			out[problemRefused(k)] = text
		}
	}
	return out
}

// nouns name the resources of a kind for users.
var nouns = [kinds]string{kindSecret: "secrets", kindCluster: "clusters", kindEndpoint: "endpoints",
	kindListener: "listeners", kindRoute: "routes", kindExtension: "filters"}

// shownRefusals is the number of names and reasons in a text.
const shownRefusals = 3

// text returns the refusals with their times and reasons, oldest first; empty for none.
func (f refusals) text(k kind) string {
	if len(f) == 0 {
		return ""
	}
	order := slices.SortedFunc(maps.Keys(f), func(a, b string) int {
		return cmp.Or(f[a].since.Compare(f[b].since), strings.Compare(a, b))
	})
	var named, reasons []string
	for _, name := range order {
		if name != "" {
			named = append(named, name)
		}
		if reason := f[name].reason; !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	what := nouns[k]
	if more := len(named) - shownRefusals; more > 0 {
		named = append(named[:shownRefusals], fmt.Sprintf("%d more", more))
	}
	if len(named) > 0 {
		what += " (" + strings.Join(named, ", ") + ")"
	}
	return shorten(fmt.Sprintf("it refuses %s since %s: %s", what, f[order[0]].since.UTC().Format(time.RFC3339),
		strings.Join(reasons[:min(len(reasons), shownRefusals)], ", ")))
}

// answer is the response that a proxy answers: its resources, or the whole of a kind in the state-of-the-world protocol.
type answer struct {
	resources []*discovery.Resource
	whole     bool
}
