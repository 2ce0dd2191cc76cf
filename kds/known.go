package kds

import (
	"maps"
	"sync"

	"github.com/causeway-mesh/causeway/resources"
)

// Known holds the version of each resource that a peer's copy here has, so that an unchanged copy is neither decoded
// nor compared again, and a new session can say what it has. It outlives sessions; with KnownFiles it outlives the
// process. Safe for concurrent use.
type Known struct {
	mu     sync.Mutex
	byType map[resources.Type]map[string]knownCopy // guarded by mu; by name on the wire
	dirty  bool                                    // guarded by mu: changed since takeDirty
	// doubted holds the types that the next session compares in full, whatever the store says.
	doubted map[resources.Type]bool // guarded by mu
	// changed, if not nil, gets a value once something changed.
	changed chan struct{}
}

// knownCopy is one resource of the peer, as it was last judged.
type knownCopy struct {
	version string
	// key and revision are those of the stored copy; a copy that was edited by hand has another revision.
	key      resources.Key
	revision uint64
	// refused is set if the version was not stored.
	refused bool
}

// newKnown returns an empty Known.
func newKnown() *Known { return &Known{byType: map[resources.Type]map[string]knownCopy{}} }

func (k *Known) get(t resources.Type, name string) (knownCopy, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, ok := k.byType[t][name]
	return c, ok
}

// forget drops everything, so that the next session compares in full.
func (k *Known) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.byType)
	k.doubted = map[resources.Type]bool{}
	for _, d := range resources.Descriptors() {
		k.doubted[d.Type] = true
	}
	k.touchLocked()
}

// versionOf returns the version of a copy, or "" if it is unknown: the version that this process recorded, otherwise
// the one in the store, which another replica may have written.
func (k *Known) versionOf(name string, r *resources.Resource) (version string, refused bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c, ok := k.byType[r.Type][name]; ok && (c.refused || c.revision == r.Revision) {
		return c.version, c.refused
	}
	if k.doubted[r.Type] {
		return "", false
	}
	return r.Version, false
}

// compared ends the doubt about a type: a complete list or answer has arrived.
func (k *Known) compared(t resources.Type) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.doubted, t)
}

// update records a batch: copies as they are now, and names that are gone.
func (k *Known) update(t resources.Type, copies map[string]knownCopy, gone []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.byType[t]
	if m == nil {
		m = make(map[string]knownCopy, len(copies))
		k.byType[t] = m
	}
	for name, c := range copies {
		m[name] = c
	}
	for _, name := range gone {
		delete(m, name)
	}
	if len(copies)+len(gone) > 0 {
		k.touchLocked()
	}
}

// touch causes everything to be written again.
func (k *Known) touch() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.touchLocked()
}

func (k *Known) touchLocked() {
	k.dirty = true
	select {
	case k.changed <- struct{}{}: // changed is nil without a file
	default:
	}
}

// takeDirty reports whether something changed since the last call.
func (k *Known) takeDirty() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.dirty
	k.dirty = false
	return was
}

func (k *Known) put(t resources.Type, name string, c knownCopy) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byType[t] == nil {
		k.byType[t] = map[string]knownCopy{}
	}
	k.byType[t][name] = c
}

func (k *Known) copy() map[resources.Type]map[string]knownCopy {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make(map[resources.Type]map[string]knownCopy, len(k.byType))
	for t, m := range k.byType {
		all[t] = maps.Clone(m)
	}
	return all
}
