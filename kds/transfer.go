package kds

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// transfer is a complete list or a change on its way from one position of the changelog to another, in one message or
// several. All its messages describe the same snapshot, which is kept from one part to the next: a resource that is
// created and deleted between two parts is not missed.
type transfer struct {
	// target is the revision of snapshot: the type's cursor once the transfer is done.
	target   uint64
	snapshot store.Snapshot
	// list is set for everything; otherwise the transfer holds the changes after since.
	list  bool
	since uint64
	// after is the last resource sent so far, nil at the beginning; afterName the last removal.
	after     *resources.Key
	afterName string
	done      bool
}

// behind returns the transfer after p, its next message, was answered: end, which it fills in, if p is the last.
func (t *transfer) behind(p *chunk, end *transfer) *transfer {
	if p.done {
		*end = transfer{target: t.target, list: t.list, done: true}
		return end
	}
	return &transfer{target: t.target, snapshot: t.snapshot, list: t.list, since: t.since, after: p.after,
		afterName: p.afterName}
}

// sent reports whether an earlier part contained the resource under key.
func (t *transfer) sent(key *resources.Key) bool {
	return t.after != nil && compareKeys(*key, *t.after) <= 0
}

func (t *transfer) full() bool { return t.list }

// step is the change of one key between two positions of the changelog.
type step struct{ old, new *resources.Resource }

// next builds the type's next message and puts it in flight. It returns nil if the peer lacks nothing, or if a list is
// now due.
func (s *sender) next(sub *subscription) (*response, error) {
	t := sub.transfer
	if t == nil {
		snapshot := sub.source.store.Snapshot()
		t = &s.begun
		*t = transfer{target: snapshot.Revision(), snapshot: snapshot, list: sub.full, since: sub.cursor}
		defer func() { s.begun = transfer{} }() // it would keep the snapshot alive
	}
	sub.dirty = false
	chunk, err := s.pack(sub, t)
	if errors.Is(err, errWindow) {
		return s.beyondWindow(sub)
	}
	if err != nil {
		return nil, err
	}
	if chunk == nil || chunk.empty() && !t.list && t.after == nil && t.afterName == "" {
		sub.transfer = nil
		if chunk != nil {
			sub.cursor = t.target
			sub.line.UpToDate(t.target)
		}
		return nil, nil
	}
	if t.list {
		sub.full = false
	}
	now := s.now()
	steps := s.trace(sub, &chunk.cause)
	p := progress{
		revision: t.target, list: t.list && sub.have == nil, resume: t.list && sub.have != nil, more: !chunk.done,
		age: ageOf(&chunk.cause, now), traces: steps.Contexts(),
	}
	if s.wordAt != nil {
		p.word = s.wordAt(t.target)
	}
	m := s.message(string(sub.descriptor.Type), p)
	m.removed, m.bundle = chunk.removed, chunk.bundle
	sub.inflight = &inflight{nonce: m.nonce, chunk: chunk, revision: t.target, sent: now, steps: steps}
	sub.inflight.next = t.behind(chunk, &sub.inflight.end)
	return m, nil
}

// beyondWindow handles a peer that is behind the changelog's window. A peer that joins parts gets a complete list, in
// its turn. Any other takes only a stream's first response as complete, so it must open a new stream.
func (s *sender) beyondWindow(sub *subscription) (*response, error) {
	if !s.audience.Features.Has(exchange.FeatureParts) {
		return nil, fmt.Errorf("%w (%s)", ErrPastWindow, sub.descriptor.Type)
	}
	sub.transfer, sub.full, sub.dirty = nil, true, true
	return nil, nil
}

// errWindow reports that the changelog does not reach back far enough.
var errWindow = errors.New("past the changelog's window")

// fold merges the commits after the transfer's start into one step for each key, ordered by key. A zone that was
// enabled or disabled affects everything that it wrote.
func (s *sender) fold(sub *subscription, t *transfer, v *view) ([]step, store.Cause, error) {
	var cause store.Cause
	commits, ok := sub.source.store.Changes(t.since)
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
			if s.direction == exchange.GlobalToZone && key.Type == resources.TypeZone {
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
func (s *sender) split(steps []step, v *view) (adds iter.Seq[addition], removed []string) {
	var send []addition
	for _, st := range steps {
		if st.old != nil && !s.crossing.SameForAll(st.old, s.direction) {
			v.isParticular()
		}
		before := st.old != nil && s.crossing.Stops(st.old, &v.then) == ""
		e := (*encoded)(nil)
		if st.new != nil {
			e = s.sendable(st.new, v)
		}
		switch {
		case e != nil && (!before || !s.sameForPeer(st)):
			send = append(send, addition{&st.new.Key, e})
			if before {
				if name := s.wireName(st.old); name != e.name {
					removed = append(removed, name)
				}
			}
		case e == nil && before:
			removed = append(removed, s.wireName(st.old))
		}
	}
	return slices.Values(send), removed
}

// sameForPeer reports whether the peer would be sent the same again: a zone does not see a status.
func (s *sender) sameForPeer(st step) bool {
	if st.old == st.new {
		return true
	}
	if s.direction == exchange.GlobalToZone && st.old.Spec.Equal(st.new.Spec) && equalLabels(st.old, st.new) {
		return true
	}
	return false
}

func (s *sender) wireName(r *resources.Resource) string {
	return s.encoder.mapping.WireNameOf(r, &s.audience)
}

func compareKeys(a, b resources.Key) int {
	return cmp.Or(cmp.Compare(a.Mesh, b.Mesh), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
