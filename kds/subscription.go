package kds

import (
	"time"

	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// subscription is one type that the peer subscribed to.
type subscription struct {
	// The fields that every change reads for each type of each zone come first, in one cache line.
	descriptor *resources.Descriptor
	source     *source
	// inflight is the message that the peer has not answered.
	inflight *inflight
	// transfer is a list or change of several messages, between two of them.
	transfer *transfer
	// cursor is the revision up to which the peer has answered everything.
	cursor uint64
	// dirty is set if the type may have changed after cursor; full if the changes are unknown, so that a complete list
	// is due.
	dirty, full bool

	line *tracker.Line
	// noticed is the time at which dirty was set.
	noticed time.Time
	// have is what the peer says it has, until the first list is answered.
	have *inventory
}

// lists reports whether the type's next message belongs to a full state.
func (sub *subscription) lists() bool {
	return sub.full || sub.transfer != nil && sub.transfer.list
}

// inflight is a message on its way. All streams share the resources.
type inflight struct {
	nonce string
	*chunk
	revision uint64
	// next is the position of the type once the peer has answered.
	next *transfer
	// end is the value of next if this message completes the transfer.
	end  transfer
	sent time.Time
	// heard is the time of the peer's last sign of life for this message; zero if there was none.
	heard time.Time
	// late is nil until the answer is late.
	late *late
	// steps end with the answer.
	steps store.Steps
}

func (m *inflight) names() []string {
	names := make([]string, 0, len(m.resources)+len(m.removed))
	for _, r := range m.resources {
		names = append(names, r.name)
	}
	return append(names, m.removed...)
}

// about returns a function that adds the resource's identity and version to a refusal.
func (m *inflight) about() func(*tracker.Refusal) {
	byName := make(map[string]*encoded, len(m.resources))
	for _, e := range m.resources {
		byName[e.name] = e
	}
	return func(r *tracker.Refusal) {
		if e := byName[r.Name]; e != nil {
			r.Version, r.Key, r.KRI = e.version, e.key, e.kri
		}
	}
}

// subscriptions are the types that a peer subscribed to.
type subscriptions struct {
	types map[resources.Type]*subscription
	// order is the registry's, so that referenced types are sent first.
	order []*subscription
}

func newSubscriptions() subscriptions {
	return subscriptions{types: map[resources.Type]*subscription{}}
}

func (all *subscriptions) add(sub *subscription) {
	all.types[sub.descriptor.Type] = sub
	all.order = all.order[:0]
	for _, d := range resources.Descriptors() {
		if sub, ok := all.types[d.Type]; ok {
			all.order = append(all.order, sub)
		}
	}
}

// idle reports whether every message has been answered. A type for which sendReady had nothing to send is no longer
// dirty.
func (all *subscriptions) idle() bool {
	for _, sub := range all.order {
		if sub.inflight != nil {
			return false
		}
	}
	return true
}

// listing reports whether a full state is under way or due.
func (all *subscriptions) listing() bool {
	for _, sub := range all.order {
		if sub.dirty && sub.lists() || sub.inflight != nil && sub.inflight.next.list {
			return true
		}
	}
	return false
}

// prompt reports whether gRPC has accepted everything in flight.
func (all *subscriptions) prompt() bool {
	unanswered := 0
	for _, sub := range all.order {
		if sub.inflight != nil {
			unanswered += sub.inflight.size
		}
	}
	return unanswered <= promptBytes
}

// haveSize returns the approximate size of the peer's versions that are still needed, in bytes.
func (all *subscriptions) haveSize() (size int) {
	for _, sub := range all.order {
		if sub.have != nil {
			size += sub.have.size
		}
	}
	return size
}
