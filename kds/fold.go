package kds

import (
	"cmp"
	"errors"
	"iter"
	"slices"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// step is the change of one key between two positions of the changelog.
type step struct{ old, new *resources.Resource }

// errWindow reports that the changelog does not reach back far enough.
var errWindow = errors.New("past the changelog's window")

// fold merges the commits after the transfer's start into one step for each key, ordered by key. A zone that was
// enabled or disabled affects everything that it wrote.
func (k *packer) fold(sub *subscription, t *transfer, v *view) ([]step, store.Cause, error) {
	var cause store.Cause
	commits, ok := sub.source.store.Notable(t.since)
	if !ok {
		return nil, cause, errWindow
	}
	var order []resources.Key
	steps := map[resources.Key]step{}
	for _, c := range commits {
		if c.Revision > t.target {
			break
		}
		concerned := false
		for _, change := range c.Changes {
			key := change.Key()
			if k.direction == exchange.GlobalToZone && key.Type == resources.TypeZone {
				v.was(key.Name, change.Old)
			}
			if key.Type != sub.descriptor.Type {
				continue
			}
			concerned = true
			first, seen := steps[key]
			if !seen {
				first.old = change.Old
				order = append(order, key)
			}
			steps[key] = step{old: first.old, new: change.New}
		}
		if concerned {
			cause.Join(&c.Cause)
		}
	}
	for zone := range v.flipped() {
		v.isParticular()
		if sub.descriptor.AcrossZones {
			for r := range t.snapshot.List(store.Query{Type: sub.descriptor.Type,
				Labels: map[string]string{resources.LabelZone: zone}}) {
				if _, seen := steps[r.Key]; !seen {
					steps[r.Key] = step{old: r, new: r}
					order = append(order, r.Key)
				}
			}
		}
	}
	slices.SortFunc(order, compareKeys)
	out := make([]step, len(order))
	for i, key := range order {
		out[i] = steps[key]
	}
	return out, cause, nil
}

// split returns what the peer must be sent for the steps, and what is gone for it: what it could see before and cannot
// now.
func (k *packer) split(steps []step, v *view) (adds iter.Seq[addition], removed []string) {
	var send []addition
	for _, st := range steps {
		if st.old != nil && !k.filter.SameForAll(st.old, k.direction) {
			v.isParticular()
		}
		before := st.old != nil && k.filter.Stops(st.old, &v.then) == ""
		e := (*encoded)(nil)
		if st.new != nil {
			e = k.sendable(st.new, v)
		}
		switch {
		case e != nil && (!before || !k.sameForPeer(st)):
			send = append(send, addition{&st.new.Key, e})
			if before {
				if name := k.wireName(st.old); name != e.name {
					removed = append(removed, name)
				}
			}
		case e == nil && before:
			removed = append(removed, k.wireName(st.old))
		}
	}
	return slices.Values(send), removed
}

// sameForPeer reports whether the peer would be sent the same again: a zone does not see a status.
func (k *packer) sameForPeer(st step) bool {
	if st.old == st.new {
		return true
	}
	if k.direction == exchange.GlobalToZone && st.old.Spec.Equal(st.new.Spec) && equalLabels(st.old, st.new) {
		return true
	}
	return false
}

func (k *packer) wireName(r *resources.Resource) string {
	return k.encoder.mapping.WireNameOf(r, &k.audience)
}

func compareKeys(a, b resources.Key) int {
	return cmp.Or(cmp.Compare(a.Mesh, b.Mesh), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
