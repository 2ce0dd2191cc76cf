package api_test

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/api"
)

// state is a state whose revision counts the looks at it, if it moves. A look takes so long.
type state struct {
	looks atomic.Int64
	moves bool
	takes time.Duration

	mu   sync.Mutex
	next chan struct{} // guarded by mu: closed at the next change
}

// Wait implements api.Changing.
func (s *state) Wait() (next func() <-chan struct{}, end func()) {
	return func() <-chan struct{} {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.next
	}, func() {}
}

func (s *state) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.next)
	s.next = make(chan struct{})
}

// serveState serves a state in the place of the status of a zone.
func serveState(t *testing.T, wait time.Duration, s *state) *fixture {
	t.Helper()
	s.next = make(chan struct{})
	return serveConfig(t, api.Config{WatchWait: wait}, func(server *api.Server) {
		server.Handle(api.RouteZoneSync, func(w http.ResponseWriter, r *http.Request) error {
			return server.AwaitOther(w, r, s, func() (any, string) {
				for begun := time.Now(); time.Since(begun) < s.takes; {
				}
				n := s.looks.Add(1)
				if !s.moves {
					n = 1
				}
				return n, strconv.FormatInt(n, 10)
			})
		})
	})
}

// TestWatchOfAStateLooksALastTime checks that the answer that nothing has changed is true where what has changed tells
// nobody, and that an answer has one look.
func TestWatchOfAStateLooksALastTime(t *testing.T) {
	t.Parallel()
	s := &state{moves: true}
	f := serveState(t, 300*time.Millisecond, s)
	if got := f.mustCall(t, "GET", "/zones/z/_sync", ""); got != "1\n" || s.looks.Load() != 1 {
		t.Errorf("the answer is %q after %d looks, want 1 after one", got, s.looks.Load())
	}
	if got := f.mustCall(t, "GET", "/zones/z/_sync?watch=2", ""); got != "3\n" {
		t.Errorf("it has changed, and the answer is %q", got)
	}
	still := serveState(t, 300*time.Millisecond, &state{})
	if got := still.mustCall(t, "GET", "/zones/z/_sync?watch=1", ""); got != "" {
		t.Errorf("nothing has changed, and the answer is %q", got)
	}
}

// TestLooksAtALargeStateAreFew checks that a waiting request has a small share of a processor, however large and restless a
// peer makes the state.
func TestLooksAtALargeStateAreFew(t *testing.T) {
	t.Parallel()
	s := &state{takes: 40 * time.Millisecond}
	f := serveState(t, 1500*time.Millisecond, s)
	ended := make(chan struct{})
	go func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticker.C:
				s.beat()
			}
		}
	}()
	f.mustCall(t, "GET", "/zones/z/_sync?watch=1", "")
	close(ended)
	if n := s.looks.Load(); n > 3 {
		t.Errorf("%d looks of 40 ms within 1.5 s", n)
	}
}
