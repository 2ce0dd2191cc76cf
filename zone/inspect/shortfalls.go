package inspect

import (
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// shortfallsAge limits how often the insights are read for it, because their counts change all the time.
const shortfallsAge = time.Second

// Shortfalls holds proxies' reports about the policies of each mesh, at most shortfallsAge old.
type Shortfalls struct {
	// Status is the store with the DataplaneInsights. Required.
	Status store.Reader
	// Now is the time.
	Now func() time.Time

	mu     sync.Mutex
	meshes map[string]readShortfalls // guarded by mu
}

// readShortfalls holds the result of a read, with its time and the store's revision.
type readShortfalls struct {
	at       time.Time
	revision uint64
	found    matching.Shortfalls
}

// Of returns the reports about the policies of a mesh. They must not be changed.
func (s *Shortfalls) Of(mesh string) matching.Shortfalls {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known, snap, now := s.meshes[mesh], s.Status.Snapshot(), s.Now()
	if known.found != nil && (known.revision == snap.Revision() || now.Sub(known.at) < shortfallsAge) {
		return known.found
	}
	if s.meshes == nil || len(s.meshes) > maxShortfallMeshes {
		s.meshes = map[string]readShortfalls{}
	}
	known = readShortfalls{at: now, revision: snap.Revision(), found: matching.NewShortfalls(
		snap.List(store.Query{Type: resources.TypeDataplaneInsight, Mesh: mesh}))}
	s.meshes[mesh] = known
	return known.found
}

// maxShortfallMeshes limits the cached meshes, some of which may be gone.
const maxShortfallMeshes = 1000
