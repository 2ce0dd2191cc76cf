package api

import (
	"context"
	"net/http"
	"runtime"
	"sync"

	"github.com/causeway-mesh/causeway/access"
)

// maxWaitingOfUser bounds the expensive requests of one user that wait for their turn.
const maxWaitingOfUser = 64

// turns limits the concurrent expensive requests of one user to half of the processors, at least one. Others of the
// same user wait. Other users do not: the limit bounds what one credential can take from all others.
type turns struct {
	mu    sync.Mutex
	users map[string]*turn // guarded by mu; a user without expensive requests has no entry
}

// turn is the expensive requests of one user.
type turn struct {
	running chan struct{}
	// requests counts running and waiting ones.
	requests int // guarded by turns.mu
}

func newTurns() *turns { return &turns{users: map[string]*turn{}} }

// take waits for the user's turn until ctx ends. The caller must call done after the request. Loopback without a
// credential is not limited. Errors: a 429 if too many wait, or that of ctx.
func (t *turns) take(ctx context.Context) (done func(), err error) {
	subject := access.SubjectOf(ctx)
	if subject.Method == access.ByLoopback {
		return func() {}, nil
	}
	user := subject.Budget()
	one := t.enter(user)
	if one == nil {
		return nil, tooMuch("you have %d expensive requests waiting, the maximum: send them one after another", maxWaitingOfUser)
	}
	select {
	case one.running <- struct{}{}:
		return func() { <-one.running; t.leave(user, one) }, nil
	case <-ctx.Done():
		t.leave(user, one)
		return nil, ctx.Err()
	}
}

func (t *turns) enter(user string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.users[user]
	if one == nil {
		one = &turn{running: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
		t.users[user] = one
	}
	if one.requests >= maxWaitingOfUser+cap(one.running) {
		return nil
	}
	one.requests++
	return one
}

func (t *turns) leave(user string, one *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one.requests--; one.requests == 0 {
		delete(t.users, user)
	}
}

// inTurn calls h, in the user's turn if the request is expensive.
func (s *Server) inTurn(w http.ResponseWriter, r *http.Request, row *Row, h HandlerFunc) error {
	if r.URL.Query().Has(watchQuery) {
		if changed, err := s.awaitChange(r, row); err != nil || !changed {
			if err == nil {
				w.WriteHeader(http.StatusNoContent)
			}
			return err
		}
	}
	if row.Expensive || r.URL.Query().Has(dryRunQuery) {
		done, err := s.turns.take(r.Context())
		if err != nil {
			return err
		}
		defer done()
		if err := again(r.Context()); err != nil {
			return err
		}
	}
	return h(w, r)
}
