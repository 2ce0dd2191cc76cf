package kds

import (
	"errors"
	"fmt"

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

// next builds the type's next message and puts it in flight. It returns nil if the peer lacks nothing, or if a list is
// now due.
func (s *sender) next(sub *subscription) (*response, error) {
	t := sub.transfer
	if t == nil {
		snapshot := sub.source.store.Snapshot()
		t = &s.outbox.begun
		*t = transfer{target: snapshot.Revision(), snapshot: snapshot, list: sub.full, since: sub.cursor}
		defer func() { s.outbox.begun = transfer{} }() // it would keep the snapshot alive
	}
	if !s.gate.open(t.snapshot, s.feed.durable.seen) {
		return nil, ErrZoneDisabled // since the last look
	}
	sub.dirty = false
	chunk, err := s.packer.pack(sub, t)
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
		s.slot.sends(chunk.size)
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
	m.removed, m.payload, m.compressed = chunk.removed, chunk.payload, chunk.compressed
	sub.inflight = &inflight{nonce: m.nonce, chunk: chunk, revision: t.target, sent: now, steps: steps}
	sub.inflight.next = t.behind(chunk, &sub.inflight.end)
	return m, nil
}

// beyondWindow handles a peer that is behind the changelog's window. A peer that joins parts gets a complete list, in
// once it has a slot. Any other takes only a stream's first response as complete, so it must open a new stream.
func (s *sender) beyondWindow(sub *subscription) (*response, error) {
	if !s.packer.audience.Features.Has(exchange.FeatureParts) {
		return nil, fmt.Errorf("%w (%s)", ErrPastWindow, sub.descriptor.Type)
	}
	sub.transfer, sub.full, sub.dirty = nil, true, true
	return nil, nil
}
