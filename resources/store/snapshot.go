package store

import (
	"fmt"
	"iter"

	"github.com/hashicorp/go-memdb"

	"github.com/causeway-mesh/causeway/resources"
)

// snapshot is a read-only memdb transaction at a revision. It is safe for concurrent use: memdb only creates iterators
// over an immutable tree.
type snapshot struct {
	revision uint64
	txn      *memdb.Txn
}

func (s *snapshot) Revision() uint64 { return s.revision }

func (s *snapshot) Get(k resources.Key) *resources.Resource { return get(s.txn, k) }

func (s *snapshot) List(q Query) iter.Seq[*resources.Resource] {
	index, prefix := q.lookup()
	return func(yield func(*resources.Resource) bool) {
		it, err := s.txn.Get(table, index+byPrefix, prefix)
		if err != nil {
			panic(fmt.Sprintf("list %s: %v", q.Type, err)) // The schema is fixed: this is a programming error.
		}
		for raw := it.Next(); raw != nil; raw = it.Next() {
			if r := raw.(*resources.Resource); q.selects(r) && !yield(r) {
				return
			}
		}
	}
}

func (s *snapshot) Count(of resources.Type, mesh string) int {
	return countIn(s.txn, populated{of, mesh})
}

// get returns the resource, or nil if there is none.
func get(txn *memdb.Txn, k resources.Key) *resources.Resource {
	raw, err := txn.First(table, indexID, k)
	if err != nil {
		panic(fmt.Sprintf("get %s: %v", k, err)) // The schema is fixed: this is a programming error.
	}
	r, _ := raw.(*resources.Resource)
	return r
}

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
