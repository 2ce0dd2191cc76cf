package kds

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// checkInvariants returns a senderConfig.inspect that asserts the invariants of a sender, as its comment numbers them.
func checkInvariants(t interface{ Errorf(string, ...any) }) func(*sender) {
	return func(s *sender) {
		if err := s.broken(); err != nil {
			t.Errorf("the sender of zone %q is broken: %v", s.zone, err)
		}
	}
}

// broken returns the invariants that do not hold. Those of a stream that is over do not matter.
func (s *sender) broken() error {
	if s.stream == nil || s.failed != nil {
		return nil
	}
	var errs []error
	wrong := func(invariant int, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%d: %s", invariant, fmt.Sprintf(format, args...)))
	}
	if s.peer == nil && len(s.order) > 0 {
		wrong(1, "%d types of an unknown peer", len(s.order))
	}
	var order []*subscription
	for _, d := range resources.Descriptors() {
		if sub := s.types[d.Type]; sub != nil {
			order = append(order, sub)
		}
	}
	if !slices.Equal(order, s.order) || len(order) != len(s.types) {
		wrong(2, "%d types, of which %d are in order", len(s.types), len(s.order))
	}
	nonces := map[string]resources.Type{}
	for _, sub := range s.order {
		s.brokenType(sub, wrong)
		if m := sub.inflight; m != nil {
			if other, taken := nonces[m.nonce]; taken || m.nonce == "" {
				wrong(3, "%s and %s have the nonce %q", sub.descriptor.Type, other, m.nonce)
			}
			nonces[m.nonce] = sub.descriptor.Type
		}
	}
	if m := s.outbox.unsent; m != nil && (s.types[m.sub.descriptor.Type] != m.sub || m.sub.inflight == nil ||
		m.sub.inflight.nonce != m.message.nonce) {
		wrong(4, "the unsent message of %s is not the one in flight", m.sub.descriptor.Type)
	}
	if size := s.haveSize(); size > maxHave {
		wrong(8, "the versions of the peer take %d bytes, of at most %d", size, maxHave)
	}
	if turn := &s.slot; turn.got && turn.ready == nil || turn.got != (turn.over != nil) {
		wrong(9, "the turn is asked for %t, had %t, limited %t", turn.ready != nil, turn.got, turn.over != nil)
	}
	if s.outbox.begun.snapshot != nil {
		wrong(10, "a transfer that has begun keeps its snapshot")
	}
	return errors.Join(errs...)
}

// brokenType calls wrong for the invariants of one type.
func (s *sender) brokenType(sub *subscription, wrong func(int, string, ...any)) {
	typ, m, t := sub.descriptor.Type, sub.inflight, sub.transfer
	if want := s.feed.of(typ); sub.source != want {
		wrong(2, "%s is sent from another store", typ)
	}
	if m != nil {
		switch {
		case m.next == nil || m.next.target != m.revision:
			wrong(3, "%s: the message of revision %d does not say where it leads", typ, m.revision)
		case sub.cursor > m.revision:
			wrong(3, "%s: the cursor %d is ahead of the message, %d", typ, sub.cursor, m.revision)
		case t != nil && t.target != m.revision:
			wrong(3, "%s: a part of revision %d in a transfer to %d", typ, m.revision, t.target)
		case m.next.done != (m.next == &m.end) || m.next.done == (m.next.snapshot != nil):
			wrong(10, "%s: done %t, and a snapshot is kept %t", typ, m.next.done, m.next.snapshot != nil)
		}
	}
	if t != nil {
		if t.done || t.snapshot == nil || t.snapshot.Revision() != t.target || !sub.dirty && m == nil {
			wrong(7, "%s: a transfer to %d, done %t, that nobody continues", typ, t.target, t.done)
		}
		if sub.full {
			wrong(7, "%s: a list is due while another is under way", typ)
		}
	}
	if sub.have != nil && sub.have.size != newInventory(sub.have.versions).size {
		wrong(8, "%s: versions of %d bytes count as %d", typ, newInventory(sub.have.versions).size, sub.have.size)
	}
	if sub.have != nil && !sub.lists() && (m == nil || !m.next.list) {
		wrong(8, "%s: versions are kept after the list", typ)
	}
	if sub.dirty || sub.full || m != nil || t != nil {
		return
	}
	commits, ok := sub.source.store.Changes(sub.cursor)
	for _, c := range commits {
		if ok && c.Revision <= sub.source.seen && concerns(s.direction, sub.descriptor, c) {
			wrong(6, "%s: the commit %d was read, up to %d, and is not sent to the peer, which has %d", typ, c.Revision,
				sub.source.seen, sub.cursor)
		}
	}
}

// TestInvariantsAreChecked breaks a sender in each way that an invariant excludes.
func TestInvariantsAreChecked(t *testing.T) {
	t.Parallel()
	key, spec := permission("p")
	typ := key.Type
	for name, breaks := range map[string]func(*sender){
		"1: types of an unknown peer":     func(s *sender) { s.peer = nil },
		"2: a type that is not in order":  func(s *sender) { s.order = nil },
		"2: another store":                func(s *sender) { s.types[typ].source = &s.feed.live },
		"3: a message that leads nowhere": func(s *sender) { s.types[typ].inflight.next = nil },
		"3: a cursor ahead of the message": func(s *sender) {
			s.types[typ].cursor = s.types[typ].inflight.revision + 1
		},
		"3: no nonce": func(s *sender) { s.types[typ].inflight.nonce = "" },
		"4: an unsent message of nothing in flight": func(s *sender) {
			s.outbox.unsent = &unsent{s.types[typ], &response{nonce: "x"}}
		},
		"6: a change that is not sent": func(s *sender) { s.types[typ].inflight, s.types[typ].cursor = nil, 0 },
		"7: a transfer that stops": func(s *sender) {
			s.types[typ].inflight, s.types[typ].transfer = nil, &transfer{target: 1}
		},
		"7: a list in a list": func(s *sender) {
			s.types[typ].full, s.types[typ].transfer = true, &transfer{target: s.types[typ].inflight.revision}
		},
		"8: versions of no size":         func(s *sender) { s.types[typ].have = &inventory{versions: map[string]string{"a": "1"}} },
		"9: a turn without a limit":      func(s *sender) { s.slot.got = true },
		"10: a snapshot that is kept":    func(s *sender) { s.outbox.begun.snapshot = s.store.Snapshot() },
		"10: a snapshot behind the last": func(s *sender) { s.types[typ].inflight.next.snapshot = s.store.Snapshot() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory := store.NewMemory()
			sender, _ := promptSender(t, memory)
			put(t, memory, written(t, globalHome, key, spec))
			sender.notify()
			if err := sender.broken(); err != nil {
				t.Fatal(err)
			}
			breaks(sender)
			want, _, _ := strings.Cut(name, ":")
			if err := sender.broken(); err == nil || !strings.Contains("\n"+err.Error(), "\n"+want+": ") {
				t.Errorf("found: %v", err)
			}
		})
	}
}
