package kds

import (
	"maps"
	"sync"

	"github.com/causeway-mesh/causeway/resources"
)

// CopyVersions holds the version of each resource that a peer's copy here has, so that an unchanged copy is neither decoded
// nor compared again, and a new session can say what it has. It outlives sessions; with KnownFiles it outlives the
// process. Safe for concurrent use.
type CopyVersions struct {
	mu     sync.Mutex
	byType map[resources.Type]map[string]copyVersion // guarded by mu; by name on the wire
	dirty  bool                                      // guarded by mu: changed since takeDirty
	// doubted holds the types that the next session compares in full, whatever the store says.
	doubted map[resources.Type]bool // guarded by mu
	// changed, if not nil, gets a value once something changed.
	changed chan struct{}
}

// copyVersion is one resource of the peer, as it was last judged.
type copyVersion struct {
	version string
	// key and revision are those of the stored copy; a copy that was edited by hand has another revision.
	key      resources.Key
	revision uint64
	// refused is set if the version was not stored.
	refused bool
}

// newCopyVersions returns an empty CopyVersions.
func newCopyVersions() *CopyVersions {
	return &CopyVersions{byType: map[resources.Type]map[string]copyVersion{}}
}

func (k *CopyVersions) get(t resources.Type, name string) (copyVersion, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, ok := k.byType[t][name]
	return c, ok
}

// forget drops everything, so that the next session compares in full.
func (k *CopyVersions) forget() {
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
func (k *CopyVersions) versionOf(name string, r *resources.Resource) (version string, refused bool) {
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
func (k *CopyVersions) compared(t resources.Type) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.doubted, t)
}

// update records a batch: copies as they are now, and names that are gone.
func (k *CopyVersions) update(t resources.Type, copies map[string]copyVersion, gone []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.byType[t]
	if m == nil {
		m = make(map[string]copyVersion, len(copies))
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
func (k *CopyVersions) touch() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.touchLocked()
}

func (k *CopyVersions) touchLocked() {
	k.dirty = true
	select {
	case k.changed <- struct{}{}: // changed is nil without a file
	default:
	}
}

// takeDirty reports whether something changed since the last call.
func (k *CopyVersions) takeDirty() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.dirty
	k.dirty = false
	return was
}

func (k *CopyVersions) put(t resources.Type, name string, c copyVersion) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byType[t] == nil {
		k.byType[t] = map[string]copyVersion{}
	}
	k.byType[t][name] = c
}

func (k *CopyVersions) copy() map[resources.Type]map[string]copyVersion {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make(map[resources.Type]map[string]copyVersion, len(k.byType))
	for t, m := range k.byType {
		all[t] = maps.Clone(m)
	}
	return all
}
