package kds

import (
	"fmt"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
)

// handle processes one request: a subscription, or the answer to a message.
func (s *sender) handle(req *discovery.DeltaDiscoveryRequest) error {
	if err := s.named(req.GetNode()); err != nil {
		return err
	}
	if s.peer == nil {
		s.meet(req.GetNode())
	}
	t := resources.Type(req.GetTypeUrl())
	sub := s.types[t]
	switch {
	case req.GetResponseNonce() != "":
		s.answered(sub, req)
		return nil
	case sub != nil:
		// A repeated subscription: the first list is on its way. If a message is in flight, it is a sign of life.
		if sub.inflight != nil {
			sub.inflight.heard = s.now()
		}
		return nil
	}
	d, known := resources.Lookup(t)
	if !known || !s.direction.Carries(d) {
		return s.unserved(t)
	}
	s.subscribe(d, req.GetInitialResourceVersions())
	return nil
}

// unserved processes a subscription to a type that is not served here. It gets no answer: a peer takes an empty list to
// mean that there are no resources, and deletes its own.
func (s *sender) unserved(t resources.Type) error {
	if s.unknown++; s.unknown > maxUnknownTypes {
		return fmt.Errorf("%w: more than %d", ErrTooManyTypes, maxUnknownTypes)
	}
	if _, known := resources.Lookup(t); !known {
		s.session.observe(Event{Kind: UnknownType, Direction: s.direction, Type: t})
	}
	return nil
}

// named refuses requests with a node id other than the authenticated zone.
func (s *sender) named(node *corev3.Node) error {
	if id := node.GetId(); s.direction == exchange.GlobalToZone && id != "" && id != s.zone {
		return fmt.Errorf("zone %s: %w: its requests are by node %q", s.zone, ErrNotAllowed, truncate(id))
	}
	return nil
}

func (s *sender) meet(node *corev3.Node) {
	s.peer = peerOf(node)
	s.peer.AuthTokenProvided = s.session.authTokenProvided
	s.packer.audience.Features = s.features | s.peer.Features
	s.session.introduce(s.direction, s.peer)
}

func (s *sender) subscribe(d *resources.Descriptor, have map[string]string) {
	sub := &subscription{descriptor: d, line: s.ledger.Line(s.direction, d.Type, true), dirty: true, full: true,
		noticed: s.now()}
	if len(have) > 0 {
		if h := s.packer.encoder.inventories.share(have); s.haveSize()+h.size <= maxHave {
			sub.have = h
			s.over.End(tracker.LimitResume, d.Type)
		} else {
			s.over.Meet(tracker.LimitResume, d.Type, maxHave, 1)
		}
	}
	sub.source = s.feed.of(d.Type)
	s.add(sub)
}

// answered processes an ACK or NACK. Either way the peer has judged the message, and the cursor moves on: a refused
// resource is offered again when it changes.
func (s *sender) answered(sub *subscription, req *discovery.DeltaDiscoveryRequest) {
	if sub == nil || sub.inflight == nil || sub.inflight.nonce != req.GetResponseNonce() {
		return // of a message without resources, or of an unknown one
	}
	if s.outbox.unsent != nil && s.outbox.unsent.sub == sub {
		return // of a message that was not sent yet
	}
	m := sub.inflight
	now := s.now()
	event := Event{Kind: Acknowledged, Time: now, Direction: s.direction, Type: sub.descriptor.Type,
		Resources: len(m.resources), Removed: len(m.removed), Revision: m.revision}
	if req.GetErrorDetail() == nil {
		s.accepted(sub, m)
		event.Age = ageOf(&m.cause, now)
		m.steps.End("")
	} else {
		m.steps.End("refused: " + truncate(req.GetErrorDetail().GetMessage()))
		event.Kind, event.Refusals = Rejected, s.rejected(sub, m, req.GetErrorDetail().GetMessage())
	}
	// Last, so that a message is never seen as answered before its refusals are.
	sub.inflight = nil
	s.advance(sub, m)
	behind := time.Time{}
	if sub.dirty {
		behind = sub.noticed
	}
	sub.line.Answered(sub.cursor, behind)
	s.session.observe(event)
}

// accepted clears the earlier refusals of what m brought.
func (s *sender) accepted(sub *subscription, m *inflight) {
	if s.refusals.None() {
		return
	}
	names := append(m.names(), "") // a refusal without a name is over, too
	s.refusals.Settle(tracker.Refusal{Direction: s.direction, Type: sub.descriptor.Type, ByPeer: true}, names, nil)
	s.refusals.Settle(tracker.Refusal{Direction: s.direction, Type: sub.descriptor.Type}, names, nil)
}

// rejected records which resources of m the peer's message names.
func (s *sender) rejected(sub *subscription, m *inflight, message string) []tracker.Refusal {
	scope := tracker.Refusal{Direction: s.direction, Type: sub.descriptor.Type, ByPeer: true}
	names := m.names()
	refused := parseRefusals(scope, message, names, m.about())
	s.over.Meet(tracker.LimitRefusals, "", tracker.MaxRefusals, s.refusals.Settle(scope, names, refused))
	s.log.Warn("the peer refused resources", "type", string(sub.descriptor.Type), "nonce", m.nonce, "refused",
		len(refused), "error", truncate(message))
	return refused
}

// advance moves the type's cursor, or its transfer, behind m.
func (s *sender) advance(sub *subscription, m *inflight) {
	switch {
	case m.next.done:
		sub.cursor = m.next.target
		sub.transfer, sub.have = nil, nil
		if m.next.list {
			s.pruneRefusals(sub)
		}
		sub.dirty = sub.dirty || sub.source.seen > sub.cursor
	default:
		sub.transfer, sub.dirty = m.next, true
	}
}

// pruneRefusals drops the refusals of resources that were deleted while the peer was away.
func (s *sender) pruneRefusals(sub *subscription) {
	if s.refusals.None() {
		return
	}
	snapshot := sub.source.store.Snapshot()
	for _, byPeer := range []bool{false, true} {
		s.refusals.Prune(tracker.Refusal{Direction: s.direction, Type: sub.descriptor.Type, ByPeer: byPeer},
			func(r tracker.Refusal) bool {
				return r.Key == (resources.Key{}) || snapshot.Get(r.Key) != nil
			})
	}
}

// truncate shortens a peer's text for logs.
func truncate(s string) string {
	const most = 512
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
