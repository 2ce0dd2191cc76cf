package store

import "github.com/causeway-mesh/causeway/resources"

// Stats are figures about a view, for metrics.
type Stats struct {
	Revision uint64
	// WindowCommits and WindowChanges count the contents of the changelog.
	WindowCommits, WindowChanges int
	// ByType has an entry for every type of the registry.
	ByType map[resources.Type]int64
}

// Stats returns figures about the view. During a write they may be inconsistent by that write.
func (v *View) Stats() Stats {
	s := v.current.Load()
	stats := Stats{
		Revision:      s.revision,
		WindowCommits: len(s.log.commits),
		WindowChanges: s.log.changes,
		ByType:        make(map[resources.Type]int64, len(v.counts)),
	}
	for t, n := range v.counts {
		stats.ByType[t] = n.Load()
	}
	return stats
}
