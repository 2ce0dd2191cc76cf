package kds

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
)

// session is one transport connection of a zone, with its streams. The first end of one of them, or a newer session of
// the same zone, ends it; then it may write no more.
type session struct {
	// number orders the sessions of this process; zone is the authenticated name.
	number uint64
	zone   string
	// connection is the transport connection, on the global; nil in a zone.
	connection *connection
	// transport is what the connection runs over; nil where that is not known.
	transport *transport
	// pass let the zone in; nil in a zone, and where nobody asks.
	pass Pass
	// authTokenProvided and features are from the metadata.
	authTokenProvided bool
	features          exchange.Features
	// system is what the zone calls its system namespace, on the global; empty where it does not say.
	system   string
	observer Observer
	// claim makes the zone this replica's, at the first call; set on the global, before the session can be found.
	claim func() error

	ctx    context.Context
	cancel context.CancelCauseFunc

	peer atomic.Pointer[Peer]

	mu    sync.Mutex
	open  [2]bool // guarded by mu: which streams are there
	users int     // guarded by mu: streams that have not returned
}

func newSession(ctx context.Context, number uint64, zone string, observer Observer) *session {
	s := &session{number: number, zone: zone, observer: observer}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	return s
}

// observe completes the event with whose session it is and passes it on.
func (s *session) observe(e Event) {
	e.Zone, e.Session, e.Peer = s.zone, s.number, s.peer.Load()
	s.observer.Observe(e)
}

// introduce notes what the peer says of itself.
func (s *session) introduce(d exchange.Direction, p *Peer) {
	s.peer.Store(p)
	s.observe(Event{Kind: StreamOpened, Time: time.Now(), Direction: d})
}

// fence refuses to let an ended session write. It is asked under the store's write lock.
func (s *session) fence() error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return nil
}

// enter takes a stream into the session; false when the session has ended, is another connection's, or has such a stream
// already.
func (s *session) enter(connection *connection, d exchange.Direction) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connection != connection || s.open[d] || s.ctx.Err() != nil {
		return false
	}
	s.open[d] = true
	s.users++
	return true
}

// exit takes a stream out and reports whether it was the last.
func (s *session) exit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	return s.users == 0
}
