package store

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// Overlay returns base as it would be with puts, without writing them. A put replaces the resource of base with the
// same key. Each List scans all puts, so Overlay is for occasional queries, not for serving.
func Overlay(base Snapshot, puts []*resources.Resource) Snapshot {
	o := &overlay{base: base, puts: make(map[resources.Key]*resources.Resource, len(puts))}
	for _, r := range puts {
		o.puts[r.Key] = r
	}
	o.sorted = slices.SortedFunc(maps.Values(o.puts), byKey)
	return o
}

// overlay is immutable.
type overlay struct {
	base   Snapshot
	puts   map[resources.Key]*resources.Resource
	sorted []*resources.Resource
}

// byKey compares resources in the order of List within a type.
func byKey(a, b *resources.Resource) int {
	for _, parts := range [][2]string{{a.Mesh, b.Mesh}, {a.Namespace, b.Namespace}, {a.Name, b.Name}} {
		if c := strings.Compare(parts[0], parts[1]); c != 0 {
			return c
		}
	}
	return 0
}

// Revision returns that of base, because nothing was written.
func (o *overlay) Revision() uint64 { return o.base.Revision() }

func (o *overlay) Get(k resources.Key) *resources.Resource {
	if r := o.puts[k]; r != nil {
		return r
	}
	return o.base.Get(k)
}

func (o *overlay) List(q Query) iter.Seq[*resources.Resource] {
	return func(yield func(*resources.Resource) bool) {
		var puts []*resources.Resource
		for _, r := range o.sorted {
			if q.selects(r) {
				puts = append(puts, r)
			}
		}
		for r := range o.base.List(q) {
			for len(puts) > 0 && byKey(puts[0], r) < 0 {
				if !yield(puts[0]) {
					return
				}
				puts = puts[1:]
			}
			if o.puts[r.Key] == nil && !yield(r) {
				return
			}
		}
		for _, r := range puts {
			if !yield(r) {
				return
			}
		}
	}
}

func (o *overlay) Count(of resources.Type, mesh string) int {
	n := o.base.Count(of, mesh)
	for key := range o.puts {
		if key.Type == of && key.Mesh == mesh && o.base.Get(key) == nil {
			n++
		}
	}
	return n
}

func (o *overlay) Total(of resources.Type) int {
	n := o.base.Total(of)
	for key := range o.puts {
		if key.Type == of && o.base.Get(key) == nil {
			n++
		}
	}
	return n
}

// Without returns base as it would be without the resource under k. Like Overlay, it is for occasional queries.
func Without(base Snapshot, k resources.Key) Snapshot { return &without{Snapshot: base, gone: k} }

type without struct {
	Snapshot
	gone resources.Key
}

func (w *without) Get(k resources.Key) *resources.Resource {
	if k == w.gone {
		return nil
	}
	return w.Snapshot.Get(k)
}

func (w *without) List(q Query) iter.Seq[*resources.Resource] {
	return func(yield func(*resources.Resource) bool) {
		for r := range w.Snapshot.List(q) {
			if r.Key != w.gone && !yield(r) {
				return
			}
		}
	}
}

func (w *without) Count(of resources.Type, mesh string) int {
	n := w.Snapshot.Count(of, mesh)
	if w.gone.Type == of && w.gone.Mesh == mesh && w.Snapshot.Get(w.gone) != nil {
		n--
	}
	return n
}

func (w *without) Total(of resources.Type) int {
	n := w.Snapshot.Total(of)
	if w.gone.Type == of && w.Snapshot.Get(w.gone) != nil {
		n--
	}
	return n
}
