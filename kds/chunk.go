package kds

import (
	"fmt"
	"iter"
	"slices"

	"google.golang.org/grpc/mem"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// chunk is the content of one message. Streams share it, so it is immutable once made.
type chunk struct {
	*payload
	removed []string
	// compressed replaces the resources in the message; nil if they are sent as they are.
	compressed *mem.SliceBuffer
	// size is the size of the resources on the wire, in bytes.
	size int
	// cause is that of the changes; zero for a list.
	cause store.Cause
	// after and afterName are the transfer's position behind this message; done is set on the last message.
	after     *resources.Key
	afterName string
	done      bool
}

func (p *chunk) empty() bool { return len(p.resources) == 0 && len(p.removed) == 0 }

// packer makes the messages of one stream. It changes no subscription.
type packer struct {
	*senderConfig
	audience exchange.Audience
}

// pack returns one message of the transfer, made here or by another stream. It returns nil if the list is too large for
// a peer that needs it in one message.
func (k *packer) pack(sub *subscription, t *transfer) (*chunk, error) {
	key, shareable := k.chunkKey(sub, t)
	if !shareable {
		return k.packAlone(sub, t, newView(k.audience, t.snapshot))
	}
	unchanged := func(from uint64) bool { return k.unchanged(sub, from, t.target) }
	if p := k.encoder.found(key, t.target, unchanged); p != nil {
		return p, nil
	}
	v := newView(k.audience, t.snapshot)
	if t.list {
		done, others := k.encoder.chunks.begin(key)
		defer done()
		v.alone = done
		if others != nil {
			<-others
			if p := k.encoder.found(key, t.target, unchanged); p != nil {
				return p, nil
			}
		}
	}
	p, err := k.packAlone(sub, t, v)
	if p != nil && !v.particular {
		k.encoder.chunks.keep(key, t.target, p)
	}
	return p, err
}

// chunkKey returns the key under which zones share the next message of t; false if the message is for this zone alone.
func (k *packer) chunkKey(sub *subscription, t *transfer) (chunkKey, bool) {
	if k.direction != exchange.GlobalToZone {
		return chunkKey{}, false
	}
	key := chunkKey{typ: sub.descriptor.Type, features: k.audience.Features, list: t.list, since: t.since,
		afterName: t.afterName}
	if t.list {
		key.since, key.have = 0, sub.have
	}
	if t.after != nil {
		key.after = *t.after
	}
	return key, true
}

// unchanged reports whether no commit between the revisions concerns the type.
func (k *packer) unchanged(sub *subscription, from, to uint64) bool {
	commits, ok := sub.source.store.Notable(from)
	if !ok {
		return false
	}
	for _, c := range commits {
		if c.Revision > to {
			break
		}
		if concerns(k.direction, sub.descriptor, c) {
			return false
		}
	}
	return true
}

func (k *packer) payloadKey(sub *subscription) payloadKey {
	return payloadKey{typ: sub.descriptor.Type, variant: variantOf(&k.audience)}
}

// packWithin makes a message of at most limit bytes of resources.
func (k *packer) packWithin(key payloadKey, sub *subscription, t *transfer, v *view, limit int) (*chunk, error) {
	list := k.encoder.payloads.borrow()
	p, err := k.fill(sub, t, v, list, limit)
	return k.share(key, t, v, p, list), err
}

// share gives the message its resources, in the form in which all streams have them. p may be nil.
func (k *packer) share(key payloadKey, t *transfer, v *view, p *chunk, list *[]*encoded) *chunk {
	shared := k.encoder.payloads.share(key, list, t.list && !v.particular)
	if p != nil {
		p.payload = shared
		k.compress(key.typ, p)
	}
	return p
}

// fill does packWithin's work and appends the resources to list.
func (k *packer) fill(sub *subscription, t *transfer, v *view, list *[]*encoded, limit int) (*chunk, error) {
	var adds iter.Seq[addition]
	var removed []string
	var cause store.Cause
	if t.list {
		adds = k.everything(sub, t, v)
	} else {
		steps, because, err := k.fold(sub, t, v)
		if err != nil {
			return nil, err
		}
		cause = because
		adds, removed = k.split(steps, v)
	}
	p := &chunk{payload: &payload{}, after: t.after, afterName: t.afterName, cause: cause}
	var present map[string]bool
	var have map[string]string
	if t.list && sub.have != nil {
		have = sub.have.versions
		present = make(map[string]bool, len(have))
	}
	for add := range adds {
		e := add.encoded
		if present != nil {
			present[e.name] = true
			if have[e.name] == e.version {
				continue
			}
		}
		if t.sent(add.key) {
			continue
		}
		if p.size+e.size > limit && p.size > 0 {
			return k.cut(sub, t, p)
		}
		*list = append(*list, e)
		p.size += e.size
		p.after = add.key
	}
	if t.list {
		removed = vanished(have, present)
	}
	return k.packRemoved(sub, t, p, removed, limit)
}

// addition is one resource to send to the peer.
type addition struct {
	key     *resources.Key
	encoded *encoded
}

// everything yields all resources of the type that the peer can see, ordered by key. It omits what earlier parts
// brought, except where the peer's versions are compared with everything.
func (k *packer) everything(sub *subscription, t *transfer, v *view) iter.Seq[addition] {
	return func(yield func(addition) bool) {
		for r := range t.snapshot.List(store.Query{Type: sub.descriptor.Type}) {
			if sub.have == nil && t.sent(&r.Key) {
				continue
			}
			if e := k.sendable(r, v); e != nil && !yield(addition{&r.Key, e}) {
				return
			}
		}
	}
}

// packRemoved adds removals, which follow all that is new: create before delete.
func (k *packer) packRemoved(sub *subscription, t *transfer, p *chunk, removed []string, limit int) (*chunk, error) {
	slices.Sort(removed)
	for _, name := range removed {
		if name <= t.afterName {
			continue
		}
		size := len(name) + itemOverhead
		if p.size+size > limit && p.size > 0 {
			return k.cut(sub, t, p)
		}
		p.removed = append(p.removed, name)
		p.size += size
		p.afterName = name
	}
	p.done = true
	return p, nil
}

// cut ends a message before the transfer is done. A peer that cannot join the parts of a list cannot be sent the list.
func (k *packer) cut(sub *subscription, t *transfer, p *chunk) (*chunk, error) {
	if !t.list || k.audience.Features.Has(exchange.FeatureParts) {
		return p, nil
	}
	k.withhold(&encoded{}, sub.descriptor.Type, "",
		fmt.Sprintf("the complete list is larger than the %d bytes that this peer takes in one message", k.maxWhole))
	return nil, nil
}

// sendable returns r as the peer gets it, or nil if r does not cross or cannot be sent.
func (k *packer) sendable(r *resources.Resource, v *view) *encoded {
	if !k.filter.SameForAll(r, k.direction) {
		v.isParticular()
	}
	if k.filter.Stops(r, &v.now) != "" {
		return nil
	}
	e := k.encoder.encode(r, &k.audience)
	switch {
	case e.err != nil:
		v.isParticular()
		k.withhold(e, r.Type, k.wireName(r), e.err.Error())
		return nil
	case e.size > k.maxWhole:
		v.isParticular()
		k.withhold(e, r.Type, e.name, fmt.Sprintf("it is %d bytes, and one message holds %d", e.size, k.maxWhole))
		return nil
	}
	return e
}

// withhold reports, once, a resource that cannot be sent.
func (k *packer) withhold(e *encoded, t resources.Type, name, reason string) {
	r := tracker.Refusal{Direction: k.direction, Type: t, Name: name, Reason: reason, Key: e.key, KRI: e.kri}
	if old, ok := k.refusals.Get(r.Direction, t, name, false); ok && old.Reason == reason {
		return
	}
	k.over.Meet(tracker.LimitRefusals, "", tracker.MaxRefusals,
		k.refusals.Settle(tracker.Refusal{Direction: k.direction, Type: t}, []string{name}, []tracker.Refusal{r}))
	k.log.Warn("a resource cannot be sent to this peer", "type", string(t), "name", name, "reason", reason)
	k.session.observe(Event{Kind: Withheld, Direction: k.direction, Type: t, Refusals: []tracker.Refusal{r}})
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
