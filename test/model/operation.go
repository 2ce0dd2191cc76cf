package model

import (
	"fmt"
	"math/rand/v2"
)

// Step is one request. It is a deletion if Written is nil.
type Step struct {
	ID      ID
	Written *Written
}

// Apply applies the request to w.
func (w World) Apply(s Step) {
	if s.Written == nil {
		delete(w, s.ID)
		return
	}
	w[s.ID] = *s.Written
}

// Writer makes random operations. Each is one request, or two in quick succession to rename or recreate a resource.
type Writer struct {
	// Operators are the namespaces of operators where it is not the empty one, by place: in a cluster, each object has a
	// namespace, and the system namespace is the operators'.
	Operators map[string]string

	rng    *rand.Rand
	places []string
	value  int
}

// NewWriter returns a writer that writes at the places: Global, and zones.
func NewWriter(seed uint64, places ...string) *Writer {
	return &Writer{rng: rand.New(rand.NewPCG(seed, 1)), places: places}
}

// The same few names everywhere, so that they collide.
func names() []string      { return []string{"alpha", "beta", "gamma", "delta", "epsilon", "zeta"} }
func namespaces() []string { return []string{"", "ns-a", "ns-b", "ns-c"} }

func pick[T any](rng *rand.Rand, all ...T) T { return all[rng.IntN(len(all))] }

// Next returns an operation on a world.
func (o *Writer) Next(w World) []Step {
	id, kind := o.identity()
	written := o.written(kind)
	_, there := w[id]
	switch n := o.rng.IntN(10); {
	case there && n == 0:
		return []Step{{ID: id}}
	case there && n == 1: // recreated
		return []Step{{ID: id}, {ID: id, Written: &written}}
	case there && n == 2: // renamed
		to := id
		to.Name = pick(o.rng, names()...)
		if to == id {
			return []Step{{ID: id, Written: &written}}
		}
		if pick(o.rng, true, false) {
			return []Step{{ID: to, Written: &written}, {ID: id}}
		}
		return []Step{{ID: id}, {ID: to, Written: &written}}
	}
	return []Step{{ID: id, Written: &written}}
}

// identity returns an identity, and a kind that it may have.
func (o *Writer) identity() (ID, Kind) {
	id := ID{Home: pick(o.rng, o.places...), Name: pick(o.rng, names()...)}
	kind := System
	if id.Home != Global {
		id.Namespace = pick(o.rng, namespaces()...)
		kind = pick(o.rng, Service, Producer, Consumer, Owner)
		if id.Namespace == "" {
			id.Namespace = o.Operators[id.Home]
			if kind != Service {
				kind = System
			}
		}
	}
	id.Type = kind.Type()
	return id, kind
}

func (o *Writer) written(kind Kind) Written {
	o.value++
	return Written{Kind: kind, Value: o.value, Stays: o.rng.IntN(12) == 0}
}

// Document returns the resource as a user writes it.
func Document(id ID, r Written) map[string]any {
	labels := map[string]any{}
	if r.Stays {
		labels["kuma.io/kds-sync"] = "disabled"
	}
	doc := map[string]any{"type": id.Type, "mesh": mesh, "name": id.Name, "labels": labels, "spec": spec(id, r)}
	if id.Namespace != "" {
		doc["namespace"] = id.Namespace
	}
	return doc
}

func spec(id ID, r Written) map[string]any {
	conf := map[string]any{"http": map[string]any{"requestTimeout": fmt.Sprintf("%dms", r.Value)}}
	to := func(ref map[string]any) map[string]any {
		return map[string]any{"to": []any{map[string]any{"targetRef": ref, "default": conf}}}
	}
	switch r.Kind {
	case Service:
		return map[string]any{
			"selector": map[string]any{"dataplaneLabels": map[string]any{"matchLabels": map[string]any{"app": fmt.Sprintf("v%d", r.Value)}}},
			"ports":    []any{map[string]any{"name": "http", "port": 80, "appProtocol": "http"}},
		}
	case Producer:
		return to(map[string]any{"kind": "MeshService", "name": "alpha"})
	case Consumer:
		return to(map[string]any{"kind": "MeshService", "name": "alpha", "namespace": "elsewhere"})
	case Owner:
		return map[string]any{"rules": []any{map[string]any{"default": conf}}}
	case System:
		return to(map[string]any{"kind": "Mesh"})
	}
	panic("no such kind: " + string(r.Kind) + " of " + id.String())
}
