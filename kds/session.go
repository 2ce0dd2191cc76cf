package kds

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
)

// session is one transport connection of a zone, with its streams. It ends when one of them ends, or when a newer
// session of the same zone begins; then it can no longer write.
type session struct {
	// number orders the sessions of this process; zone is the authenticated name.
	number uint64
	zone   string
	// connection is the transport connection, on the global; nil in a zone.
	connection *connection
	// transport is the transport of the connection; nil if it is unknown.
	transport *transport
	// pass is the credential that admitted the zone; nil in a zone, and without Authenticate.
	pass Pass
	// authTokenProvided and features are from the metadata.
	authTokenProvided bool
	features          exchange.Features
	// system is the name of the zone's system namespace, on the global; empty if the zone does not send it.
	system   string
	observer Observer
	// claim claims the zone for this replica, at the first call; set on the global, before the session can be found.
	claim func() error

	ctx    context.Context
	cancel context.CancelCauseFunc
	now    func() time.Time

	peer atomic.Pointer[Peer]

	mu    sync.Mutex
	open  [2]bool // guarded by mu: which streams are open
	users int     // guarded by mu: streams that have not returned
}

func newSession(ctx context.Context, number uint64, zone string, observer Observer, now func() time.Time) *session {
	s := &session{number: number, zone: zone, observer: observer, now: now}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	return s
}

// observe adds the session to the event and passes it on.
func (s *session) observe(e Event) {
	e.Zone, e.Session, e.Peer = s.zone, s.number, s.peer.Load()
	s.observer.Observe(e)
}

// introduce records the peer's description of itself.
func (s *session) introduce(d exchange.Direction, p *Peer) {
	s.peer.Store(p)
	s.observe(Event{Kind: StreamOpened, Time: s.now(), Direction: d})
}

// fence fails if the session has ended, so that it cannot write. It runs under the store's write lock.
func (s *session) fence() error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return nil
}

// enter adds a stream to the session. It returns false if the session has ended, belongs to another connection, or has
// such a stream.
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

// exit removes a stream and reports whether it was the last.
func (s *session) exit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	return s.users == 0
}
