package store

import "github.com/causeway-mesh/causeway/resources"

// Stats are numbers about a view, for metrics.
type Stats struct {
	Revision uint64
	// WindowCommits and WindowChanges are what the changelog holds.
	WindowCommits, WindowChanges int
	// ByType has a row for every type of the registry.
	ByType map[resources.Type]int64
}

// Stats returns numbers about the view. While a write is under way they may differ by it from each other.
func (r *Replica) Stats() Stats {
	s := r.current.Load()
	stats := Stats{
		Revision:      s.revision,
		WindowCommits: len(s.log.commits),
		WindowChanges: s.log.changes,
		ByType:        make(map[resources.Type]int64, len(r.counts)),
	}
	for t, n := range r.counts {
		stats.ByType[t] = n.Load()
	}
	return stats
}
