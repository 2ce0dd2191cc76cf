package kds

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/resources"
)

// maxRefusals bounds what is remembered of one zone; beyond it, refusals are counted only.
const maxRefusals = 10_000

// A peer's NACK is read up to so many lines, and each up to so many bytes.
const (
	maxRefusalLines = 1000
	maxRefusalLine  = 4096
)

type refusalKey struct {
	direction Direction
	typ       resources.Type
	name      string
	byPeer    bool
}

// Refusals remembers what was refused between two peers, by resource, until the resource changes. It outlives
// sessions. Safe for concurrent use.
type Refusals struct {
	mu    sync.Mutex
	byKey map[refusalKey]Refusal       // guarded by mu
	ofKey map[resources.Key]refusalKey // guarded by mu: of the resources of this side
}

// NewRefusals returns an empty memory.
func NewRefusals() *Refusals {
	return &Refusals{byKey: map[refusalKey]Refusal{}, ofKey: map[resources.Key]refusalKey{}}
}

// List returns what is refused now, ordered by type and name.
func (f *Refusals) List() []Refusal {
	f.mu.Lock()
	out := slices.Collect(maps.Values(f.byKey))
	f.mu.Unlock()
	slices.SortFunc(out, func(a, b Refusal) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Direction, b.Direction))
	})
	return out
}

// none reports whether nothing is refused.
func (f *Refusals) none() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.byKey) == 0
}

// settle records one message: names are all that it spoke of, refused what of it was refused. A refusal of the same version
// keeps its time.
func (f *Refusals) settle(scope Refusal, names []string, refused []Refusal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.byKey) == 0 && len(refused) == 0 {
		return
	}
	before := map[refusalKey]Refusal{}
	for _, name := range names {
		key := refusalKey{scope.Direction, scope.Type, name, scope.ByPeer}
		if old, ok := f.byKey[key]; ok {
			before[key] = old
			delete(f.byKey, key)
			delete(f.ofKey, old.Key)
		}
	}
	now := time.Now()
	for _, r := range refused {
		if len(f.byKey) >= maxRefusals {
			return
		}
		key := refusalKey{r.Direction, r.Type, r.Name, r.ByPeer}
		r.Since = now
		if old, ok := before[key]; ok && old.Version == r.Version {
			r.Since = old.Since
		}
		f.byKey[key] = r
		if r.Key != (resources.Key{}) {
			f.ofKey[r.Key] = key
		}
	}
}

// prune drops the refusals of one direction, type and side that are not to be kept: a complete list tells what is there.
func (f *Refusals) prune(scope Refusal, keep func(Refusal) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, r := range f.byKey {
		if key.direction == scope.Direction && key.typ == scope.Type && key.byPeer == scope.ByPeer && !keep(r) {
			delete(f.byKey, key)
			delete(f.ofKey, r.Key)
		}
	}
}

// of returns the refusal of a resource of this side.
func (f *Refusals) of(key resources.Key) (Refusal, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ofKey) == 0 {
		return Refusal{}, false
	}
	found, ok := f.ofKey[key]
	return f.byKey[found], ok
}

// byLine lists what is refused, by direction and type, ordered by name.
func (f *Refusals) byLine() map[lineKey][]RefusedResource {
	out := map[lineKey][]RefusedResource{}
	for _, r := range f.List() {
		key := lineKey{r.Direction, r.Type}
		one := RefusedResource{Name: r.Name, Reason: r.Reason, Since: r.Since, By: "self"}
		if r.ByPeer {
			one.By = "peer"
		}
		if !r.KRI.IsZero() {
			one.KRI = r.KRI.String()
		}
		out[key] = append(out[key], one)
	}
	return out
}

// get returns the refusal of one resource.
func (f *Refusals) get(d Direction, t resources.Type, name string, byPeer bool) (Refusal, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, ok := f.byKey[refusalKey{d, t, name, byPeer}]
	return r, ok
}

// refusalMessage is the text of a NACK: one line for each resource.
func refusalMessage(refused []Refusal) string {
	lines := make([]string, len(refused))
	for i, r := range refused {
		lines[i] = r.Name + ": " + strings.ReplaceAll(r.Reason, "\n", "; ")
	}
	return strings.Join(lines, "\n")
}

// parseRefusals attributes the lines of a peer's NACK to the names that the message carried. Our own lines begin with
// the name; other peers' contain it somewhere. Lines that name nothing count for the type as a whole.
func parseRefusals(scope Refusal, message string, names []string, about func(*Refusal)) []Refusal {
	byName := map[string]Refusal{}
	var order []string
	lines := strings.SplitN(message, "\n", maxRefusalLines+1)
	for _, line := range lines[:min(len(lines), maxRefusalLines)] {
		if strings.TrimSpace(line) == "" {
			continue
		}
		line = line[:min(len(line), maxRefusalLine)]
		name, reason := attributed(line, names)
		r, seen := byName[name]
		if !seen {
			order = append(order, name)
			r = scope
			r.Name = name
			about(&r)
		} else {
			reason = r.Reason + "; " + reason
		}
		r.Reason = reason
		byName[name] = r
	}
	out := make([]Refusal, 0, len(order))
	for _, name := range order {
		out = append(out, byName[name])
	}
	return out
}

func attributed(line string, names []string) (name, reason string) {
	for _, n := range names {
		if rest, ok := strings.CutPrefix(line, n+": "); ok {
			return n, rest
		}
	}
	for _, n := range names {
		short := strings.TrimSuffix(n[:strings.LastIndexByte(n, '.')], ".")
		if strings.Contains(line, n) || strings.Contains(line, short) {
			return n, line
		}
	}
	return "", line
}
