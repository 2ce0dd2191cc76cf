package api

import (
	"context"
	"net/http"
	"runtime"
	"sync"

	"github.com/causeway-mesh/causeway/access"
)

// maxWaitingOfUser bounds the expensive requests of one user that wait.
const maxWaitingOfUser = 64

// inflightLimit limits the concurrent expensive requests of one user to half of the processors, at least one. Others of
// the same user wait. Other users do not: the limit bounds what one credential can take from all others.
type inflightLimit struct {
	mu    sync.Mutex
	users map[string]*inflight // guarded by mu; a user without expensive requests has no entry
}

// inflight counts the expensive requests of one user.
type inflight struct {
	running chan struct{}
	// requests counts running and waiting ones.
	requests int // guarded by inflightLimit.mu
}

func newInflightLimit() *inflightLimit { return &inflightLimit{users: map[string]*inflight{}} }

// acquire waits until the user may run one more expensive request, or ctx ends. The caller must call done after the
// request. Loopback without a credential is not limited. Errors: a 429 if too many wait, or that of ctx.
func (t *inflightLimit) acquire(ctx context.Context) (done func(), err error) {
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

func (t *inflightLimit) enter(user string) *inflight {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.users[user]
	if one == nil {
		one = &inflight{running: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
		t.users[user] = one
	}
	if one.requests >= maxWaitingOfUser+cap(one.running) {
		return nil
	}
	one.requests++
	return one
}

func (t *inflightLimit) leave(user string, one *inflight) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one.requests--; one.requests == 0 {
		delete(t.users, user)
	}
}

// limited calls h, within the user's limit if the request is expensive.
func (s *Server) limited(w http.ResponseWriter, r *http.Request, row *Row, h HandlerFunc) error {
	if r.URL.Query().Has(watchQuery) && !row.Waits {
		if changed, err := s.awaitChange(r, row); err != nil || !changed {
			if err == nil {
				w.WriteHeader(http.StatusNoContent)
			}
			return err
		}
	}
	if row.Expensive || r.URL.Query().Has(dryRunQuery) {
		done, err := s.inflight.acquire(r.Context())
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
