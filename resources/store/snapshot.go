package store

import (
	"iter"

	"github.com/causeway-mesh/causeway/resources"
)

// snapshot is the content of a view at a revision. It is immutable.
type snapshot struct {
	revision uint64
	index    index
}

func (s *snapshot) Revision() uint64 { return s.revision }

func (s *snapshot) Get(k resources.Key) *resources.Resource { return s.index.get(k) }

func (s *snapshot) List(q Query) iter.Seq[*resources.Resource] {
	return func(yield func(*resources.Resource) bool) { s.index.list(&q, yield) }
}

func (s *snapshot) Count(of resources.Type, mesh string) int { return s.index.countOf(of, mesh) }

func (s *snapshot) Total(of resources.Type) int { return s.index.total(of) }

// All yields everything in a snapshot, including secrets, by type in order of dependency. It is for code that copies or
// compares whole stores.
func All(s Snapshot) iter.Seq[*resources.Resource] {
	return func(yield func(*resources.Resource) bool) {
		for _, d := range resources.Stored() {
			for r := range s.List(Query{Type: d.Type}) {
				if !yield(r) {
					return
				}
			}
		}
	}
}
