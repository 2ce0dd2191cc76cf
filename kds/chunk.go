package kds

import (
	"fmt"
	"iter"
	"slices"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// chunk is the content of one message. Streams share it, so it is immutable once made.
type chunk struct {
	*bundle
	removed []string
	// size is that of the resources, in bytes.
	size int
	// cause is that of the changes; zero for a list.
	cause store.Cause
	// after and afterName are the transfer's position behind this message; done is set on the last message.
	after     *resources.Key
	afterName string
	done      bool
}

func (p *chunk) empty() bool { return len(p.resources) == 0 && len(p.removed) == 0 }

// pack returns one message of the transfer, made here or by another stream. It returns nil if the list is too large for
// a peer that needs it in one message. A zone that was disabled since the last look gets nothing more.
func (s *sender) pack(sub *subscription, t *transfer) (*chunk, error) {
	if s.direction == exchange.GlobalToZone && !s.isEnabled(t.snapshot) {
		return nil, ErrZoneDisabled
	}
	key, shareable := s.chunkKey(sub, t)
	if !shareable {
		return s.packAlone(sub, t, newView(s.audience, t.snapshot))
	}
	unchanged := func(from uint64) bool { return s.unchanged(sub, from, t.target) }
	if p := s.encoder.found(key, t.target, unchanged); p != nil {
		return p, nil
	}
	v := newView(s.audience, t.snapshot)
	if t.list {
		done, others := s.encoder.chunks.begin(key)
		defer done()
		v.alone = done
		if others != nil {
			<-others
			if p := s.encoder.found(key, t.target, unchanged); p != nil {
				return p, nil
			}
		}
	}
	p, err := s.packAlone(sub, t, v)
	if p != nil && !v.particular {
		s.encoder.chunks.keep(key, t.target, p)
	}
	return p, err
}

// chunkKey returns the key under which zones share the next message of t; false if the message is for this zone alone.
func (s *sender) chunkKey(sub *subscription, t *transfer) (chunkKey, bool) {
	if s.direction != exchange.GlobalToZone || sub.have != nil {
		return chunkKey{}, false
	}
	key := chunkKey{typ: sub.descriptor.Type, features: s.audience.Features, list: t.list, since: t.since,
		afterName: t.afterName}
	if t.list {
		key.since = 0
	}
	if t.after != nil {
		key.after = *t.after
	}
	return key, true
}

// unchanged reports whether no commit between the revisions concerns the type.
func (s *sender) unchanged(sub *subscription, from, to uint64) bool {
	commits, ok := sub.source.store.Changes(from)
	if !ok {
		return false
	}
	for _, c := range commits {
		if c.Revision > to {
			break
		}
		if s.concerns(sub, c) {
			return false
		}
	}
	return true
}

// packAlone makes the message.
func (s *sender) packAlone(sub *subscription, t *transfer, v *view) (*chunk, error) {
	list := s.encoder.bundles.borrow()
	p, err := s.fill(sub, t, v, list)
	shared := s.encoder.bundles.share(bundleKey{sub.descriptor.Type, variantOf(&s.audience)}, list, t.list &&
		!v.particular)
	if p != nil {
		p.bundle = shared
	}
	return p, err
}

// fill does packAlone's work and appends the resources to list.
func (s *sender) fill(sub *subscription, t *transfer, v *view, list *[]*encoded) (*chunk, error) {
	limit := s.maxMessage
	if t.list && !s.audience.Features.Has(exchange.FeatureParts) {
		limit = s.maxWhole
	}
	var adds iter.Seq[addition]
	var removed []string
	var cause store.Cause
	if t.list {
		adds = s.everything(sub, t, v)
	} else {
		steps, because, err := s.fold(sub, t, v)
		if err != nil {
			return nil, err
		}
		cause = because
		adds, removed = s.split(steps, v)
	}
	p := &chunk{bundle: &bundle{}, after: t.after, afterName: t.afterName, cause: cause}
	var present map[string]bool
	if t.list && sub.have != nil {
		present = make(map[string]bool, len(sub.have))
	}
	for add := range adds {
		e := add.encoded
		if present != nil {
			present[e.name] = true
			if sub.have[e.name] == e.version {
				continue
			}
		}
		if t.sent(add.key) {
			continue
		}
		if p.size+e.size > limit && p.size > 0 {
			return s.cut(sub, t, p)
		}
		*list = append(*list, e)
		p.size += e.size
		p.after = add.key
	}
	if t.list {
		removed = vanished(sub.have, present)
	}
	return s.packRemoved(sub, t, p, removed, limit)
}

// addition is one resource to send to the peer.
type addition struct {
	key     *resources.Key
	encoded *encoded
}

// everything yields all resources of the type that the peer can see, ordered by key. It omits what earlier parts
// brought, except where the peer's versions are compared with everything.
func (s *sender) everything(sub *subscription, t *transfer, v *view) iter.Seq[addition] {
	return func(yield func(addition) bool) {
		for r := range t.snapshot.List(store.Query{Type: sub.descriptor.Type}) {
			if sub.have == nil && t.sent(&r.Key) {
				continue
			}
			if e := s.sendable(r, v); e != nil && !yield(addition{&r.Key, e}) {
				return
			}
		}
	}
}

// packRemoved adds removals, which follow all that is new: create before delete.
func (s *sender) packRemoved(sub *subscription, t *transfer, p *chunk, removed []string, limit int) (*chunk, error) {
	slices.Sort(removed)
	for _, name := range removed {
		if name <= t.afterName {
			continue
		}
		size := len(name) + itemOverhead
		if p.size+size > limit && p.size > 0 {
			return s.cut(sub, t, p)
		}
		p.removed = append(p.removed, name)
		p.size += size
		p.afterName = name
	}
	p.done = true
	return p, nil
}

// cut ends a message before the transfer is done. A peer that cannot join the parts of a list cannot be sent the list.
func (s *sender) cut(sub *subscription, t *transfer, p *chunk) (*chunk, error) {
	if !t.list || s.audience.Features.Has(exchange.FeatureParts) {
		return p, nil
	}
	s.withhold(&encoded{}, sub.descriptor.Type, "",
		fmt.Sprintf("the complete list is larger than the %d bytes that this peer takes in one message", s.maxWhole))
	return nil, nil
}

// sendable returns r as the peer gets it, or nil if r does not cross or cannot be sent.
func (s *sender) sendable(r *resources.Resource, v *view) *encoded {
	if !s.crossing.SameForAll(r, s.direction) {
		v.isParticular()
	}
	if s.crossing.Stops(r, &v.now) != "" {
		return nil
	}
	e := s.encoder.encode(r, &s.audience)
	switch {
	case e.err != nil:
		v.isParticular()
		s.withhold(e, r.Type, s.wireName(r), e.err.Error())
		return nil
	case e.size > s.maxWhole:
		v.isParticular()
		s.withhold(e, r.Type, e.name, fmt.Sprintf("it is %d bytes, and one message holds %d", e.size, s.maxWhole))
		return nil
	}
	return e
}

// withhold reports, once, a resource that cannot be sent.
func (s *sender) withhold(e *encoded, t resources.Type, name, reason string) {
	r := tracker.Refusal{Direction: s.direction, Type: t, Name: name, Reason: reason, Key: e.key, KRI: e.kri}
	if old, ok := s.refusals.Get(r.Direction, t, name, false); ok && old.Reason == reason {
		return
	}
	s.over.Meet(tracker.LimitRefusals, "", tracker.MaxRefusals,
		s.refusals.Settle(tracker.Refusal{Direction: s.direction, Type: t}, []string{name}, []tracker.Refusal{r}))
	s.log.Warn("a resource cannot be sent to this peer", "type", string(t), "name", name, "reason", reason)
	s.session.observe(Event{Kind: Withheld, Direction: s.direction, Type: t, Refusals: []tracker.Refusal{r}})
}

// vanished returns the names that the peer has and should not have.
func vanished(have map[string]string, present map[string]bool) []string {
	var gone []string
	for name := range have {
		if !present[name] {
			gone = append(gone, name)
		}
	}
	return gone
}
