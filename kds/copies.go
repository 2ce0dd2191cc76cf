package kds

import (
	"fmt"
	"iter"
	"strings"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// copies yields the copies of this peer. The peer can delete nothing else.
func (v *receiver) copies(s store.Snapshot, t resources.Type) iter.Seq[*resources.Resource] {
	labels := map[string]string{resources.LabelOrigin: resources.OriginGlobal}
	if v.arrival.Direction == exchange.ZoneToGlobal {
		labels = map[string]string{resources.LabelZone: v.arrival.Zone}
	}
	return func(yield func(*resources.Resource) bool) {
		for r := range s.List(store.Query{Type: t, Labels: labels}) {
			if v.isCopy(r) && !yield(r) {
				return
			}
		}
	}
}

// isCopy reports whether r came from this peer.
func (v *receiver) isCopy(r *resources.Resource) bool {
	if v.arrival.Direction == exchange.ZoneToGlobal {
		return r.Zone() == v.arrival.Zone
	}
	return r.Labels[resources.LabelOrigin] == resources.OriginGlobal
}

// named returns the copies of wire names, except those that the message also brings.
func (v *receiver) named(p *changeset, d *resources.Descriptor, names []string,
	present map[string]bool) []*resources.Resource {
	var out []*resources.Resource
	seen := map[string]bool{}
	for _, name := range names {
		if present[name] || seen[name] {
			continue
		}
		seen[name] = true
		if r := v.copyNamed(p.snapshot, d.Type, name); r != nil {
			out = append(out, r)
		} else {
			p.gone = append(p.gone, name)
		}
	}
	return out
}

// copyNamed returns the copy whose wire name is `<name>.<mesh>`, or nil. Both parts may contain dots, so it tries every
// cut.
func (v *receiver) copyNamed(s store.Snapshot, t resources.Type, wire string) *resources.Resource {
	if len(wire) > tracker.MaxRefusedName {
		return nil
	}
	for i := strings.LastIndexByte(wire, '.'); i > 0 &&
		len(wire)-i-1 <= resources.MaxShortNameBytes; i = strings.LastIndexByte(wire[:i], '.') {
		for _, name := range v.namesOf(wire[i+1:], wire[:i]) {
			if r := lookup(s, t, wire[i+1:], name); r != nil && v.isCopy(r) {
				return r
			}
		}
	}
	return nil
}

// namesOf returns the names that a copy may have here.
func (v *receiver) namesOf(mesh, name string) []string {
	if v.arrival.Direction == exchange.ZoneToGlobal {
		return []string{exchange.ApartName(mesh, name, v.arrival.Zone), name}
	}
	return []string{name}
}

func lookup(s store.Snapshot, t resources.Type, mesh, name string) *resources.Resource {
	return s.Get(resources.Key{Type: t, Mesh: mesh, Name: name})
}

// mayReplace decides whether r may replace the stored resource held. Two owners can have the same name: on the global,
// place gives the second another.
func (v *receiver) mayReplace(held, r *resources.Resource) error {
	if v.isCopy(held) && ownerOf(held) == ownerOf(r) {
		return nil
	}
	if v.arrival.Direction == exchange.GlobalToZone && r.Descriptor().WrittenOn == resources.OnGlobal &&
		held.Labels[resources.LabelOrigin] != resources.OriginGlobal {
		return nil // made while the zone ran alone; now the global's version counts
	}
	return fmt.Errorf("the name %s is taken by %s; this one is %s: give one of them another name", r.Name,
		ownerOf(held), ownerOf(r))
}

// owner is the author of a resource, and its name there.
type owner struct{ zone, namespace, name string }

func ownerOf(r *resources.Resource) owner {
	return owner{zone: r.Zone(), namespace: r.Labels[resources.LabelNamespace], name: r.DisplayName()}
}

// String formats the owner for refusals: `zone "ab" namespace "c" name "x"`.
func (o owner) String() string {
	if o.zone == "" {
		return fmt.Sprintf("the global's own (namespace %q, name %q)", o.namespace, o.name)
	}
	return fmt.Sprintf("zone %q's (namespace %q, name %q)", o.zone, o.namespace, o.name)
}
