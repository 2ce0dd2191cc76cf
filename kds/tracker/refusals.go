package tracker

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
)

// Limits of what is held of a peer beside its resources.
const (
	// MaxRefusals bounds the refusals that are kept by name, and MaxRefusalBytes their total size; those beyond are
	// only counted. KeptRefusals stay when the peer disconnects.
	MaxRefusals     = 10_000
	MaxRefusalBytes = 4 << 20
	KeptRefusals    = 1000
	// maxReason bounds the reason that is kept, in bytes.
	maxReason = 512
	// MaxRefusedName exceeds any name that can be stored, in bytes. A refusal with a longer name is not kept.
	MaxRefusedName = 2*253 + 1
	// MaxVersion bounds the version of a resource, which is a hash or a counter, in bytes.
	MaxVersion = 256
)

// Refusal is the rejection of one resource by one side.
type Refusal struct {
	Direction exchange.Direction
	Type      resources.Type
	// Name is the name on the wire, `<name>.<mesh>`; empty if a peer's message names none.
	Name string
	// Version is the refused version, if known.
	Version string
	Reason  string
	// Since is the time when this version was first refused.
	Since time.Time
	// Key is the key of this server's resource, zero for one of the peer's; KRI is its KRI, if known.
	Key resources.Key
	KRI resources.KRI
	// ByPeer is set if the peer refused what we sent; otherwise we refused what it sent, or could not send it.
	ByPeer bool
}

type refusalKey struct {
	direction exchange.Direction
	typ       resources.Type
	name      string
	byPeer    bool
}

// Refusals holds what was refused between two peers, by resource, until the resource changes. It outlives sessions.
// Safe for concurrent use.
type Refusals struct {
	now   func() time.Time
	mu    sync.Mutex
	byKey map[refusalKey]Refusal       // guarded by mu
	ofKey map[resources.Key]refusalKey // guarded by mu: of the resources of this side
	bytes int                          // guarded by mu: approximate size of all
	// own is the size of ofKey, for Of: a thousand Refusals are asked about each resource of a list. Whoever changes ofKey
	// sets it at the end, under mu.
	own   atomic.Int64
	pulse *Pulse
}

// NewRefusals returns empty Refusals; now is their clock, and pulse beats with their changes.
func NewRefusals(now func() time.Time, pulse *Pulse) *Refusals {
	return &Refusals{now: now, pulse: pulse, byKey: map[refusalKey]Refusal{}, ofKey: map[resources.Key]refusalKey{}}
}

// List returns the current refusals, ordered by type, name, direction and side.
func (f *Refusals) List() []Refusal {
	f.mu.Lock()
	out := slices.AppendSeq(make([]Refusal, 0, len(f.byKey)), maps.Values(f.byKey))
	f.mu.Unlock()
	slices.SortFunc(out, func(a, b Refusal) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Direction, b.Direction),
			cmp.Compare(side(&a), side(&b)))
	})
	return out
}

// Count returns how many refusals there are.
func (f *Refusals) Count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.byKey)
}

// Digest returns a text that changes with what is refused, and why; empty if nothing is.
func (f *Refusals) Digest() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.byKey) == 0 {
		return ""
	}
	var all uint64 // in no order
	for key, r := range f.byKey {
		one := fnv.New64a()
		fmt.Fprintf(one, "%d %s %q %t %q %q", key.direction, key.typ, key.name, key.byPeer, r.Version, r.Reason)
		all += one.Sum64()
	}
	return fmt.Sprintf("%d-%x", len(f.byKey), all)
}

// None reports whether nothing is refused.
func (f *Refusals) None() bool { return f.Count() == 0 }

// countLocked ends a change of ofKey.
func (f *Refusals) countLocked() {
	f.own.Store(int64(len(f.ofKey)))
	f.pulse.Beat()
}

// Settle records one message: names are all names in it, refused its refusals. A refusal of the same version keeps its
// time. It returns the number of refusals that there is no room for.
func (f *Refusals) Settle(scope Refusal, names []string, refused []Refusal) (unkept int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.byKey) == 0 && len(refused) == 0 {
		return 0
	}
	defer f.countLocked()
	before := map[refusalKey]Refusal{}
	for _, name := range names {
		key := refusalKey{scope.Direction, scope.Type, name, scope.ByPeer}
		if old, ok := f.byKey[key]; ok {
			before[key] = old
			f.dropLocked(key)
		}
	}
	now := f.now()
	for i := range refused {
		r := &refused[i]
		since := now
		if old, ok := before[refusalKey{r.Direction, r.Type, r.Name, r.ByPeer}]; ok && old.Version == r.Version {
			since = old.Since
		}
		if !f.keepLocked(r, since) {
			unkept++
		}
	}
	return unkept
}

// keepLocked stores a refusal, with copies of its texts, which may be parts of a message. It reports whether there was
// room.
func (f *Refusals) keepLocked(r *Refusal, since time.Time) bool {
	one := *r
	one.Name, one.Version, one.Since = strings.Clone(r.Name), strings.Clone(r.Version), since
	one.Reason = strings.Clone(strings.ToValidUTF8(r.Reason[:min(len(r.Reason), maxReason)], ""))
	size := one.size()
	if len(one.Name) > MaxRefusedName || len(one.Version) > MaxVersion || len(f.byKey) >= MaxRefusals ||
		f.bytes+size > MaxRefusalBytes {
		return false
	}
	key := refusalKey{one.Direction, one.Type, one.Name, one.ByPeer}
	f.dropLocked(key)
	f.byKey[key] = one
	f.bytes += size
	if one.Key != (resources.Key{}) {
		f.ofKey[one.Key] = key
	}
	return true
}

func (f *Refusals) dropLocked(key refusalKey) {
	if old, ok := f.byKey[key]; ok {
		f.bytes -= old.size()
		delete(f.byKey, key)
		delete(f.ofKey, old.Key)
	}
}

// size returns the size of the texts of a refusal, in bytes.
func (r *Refusal) size() int { return len(r.Name) + len(r.Version) + len(r.Reason) }

// Rest drops all but KeptRefusals of a peer that has disconnected, and returns how many it dropped.
func (f *Refusals) Rest() (dropped int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if dropped = len(f.byKey) - KeptRefusals; dropped <= 0 {
		return 0
	}
	defer f.countLocked()
	for key := range f.byKey {
		if len(f.byKey) == KeptRefusals {
			break
		}
		f.dropLocked(key)
	}
	f.byKey, f.ofKey = maps.Clone(f.byKey), maps.Clone(f.ofKey) // a map does not shrink
	return dropped
}

// Among returns which of names are refused.
func (f *Refusals) Among(scope Refusal, names []string) (refused []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		if r, ok := f.byKey[refusalKey{scope.Direction, scope.Type, name, scope.ByPeer}]; ok {
			refused = append(refused, r.Name)
		}
	}
	return refused
}

// Prune drops the refusals of one direction, type and side for which keep returns false: a complete list shows what
// exists.
func (f *Refusals) Prune(scope Refusal, keep func(Refusal) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.countLocked()
	for key, r := range f.byKey {
		if key.direction == scope.Direction && key.typ == scope.Type && key.byPeer == scope.ByPeer && !keep(r) {
			f.dropLocked(key)
		}
	}
}

// Of returns the refusal of a resource of this side.
func (f *Refusals) Of(key resources.Key) (Refusal, bool) {
	if f.own.Load() == 0 {
		return Refusal{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	found, ok := f.ofKey[key]
	return f.byKey[found], ok
}

// byLine returns the refusals by direction and type, ordered by name.
func (f *Refusals) byLine() map[LineKey][]RefusedResource {
	out := map[LineKey][]RefusedResource{}
	for _, r := range f.List() {
		key := LineKey{r.Direction, r.Type}
		one := RefusedResource{Name: r.Name, Reason: r.Reason, Since: r.Since, By: side(&r)}
		if !r.KRI.IsZero() {
			one.KRI = r.KRI.String()
		}
		out[key] = append(out[key], one)
	}
	return out
}

// side is the side that refuses, as RefusedResource names it.
func side(r *Refusal) string {
	if r.ByPeer {
		return "peer"
	}
	return "self"
}

// Get returns the refusal of one resource.
func (f *Refusals) Get(d exchange.Direction, t resources.Type, name string, byPeer bool) (Refusal, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, ok := f.byKey[refusalKey{d, t, name, byPeer}]
	return r, ok
}

// Has reports whether this side refuses a resource of its peer.
func (f *Refusals) Has(d exchange.Direction, t resources.Type, name string) bool {
	_, refused := f.Get(d, t, name, false)
	return refused
}

// Replace replaces all refusals by a list.
func (f *Refusals) Replace(list []Refusal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.countLocked()
	f.byKey, f.ofKey, f.bytes = map[refusalKey]Refusal{}, map[resources.Key]refusalKey{}, 0
	for i := range list {
		f.keepLocked(&list[i], list[i].Since)
	}
}
