package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestExpensiveRequestsAreLimited checks that a user's expensive requests run few at a time, queue and are bounded. Other users do not wait
// for them, callers over loopback are not limited, and finished requests leave nothing behind.
func TestExpensiveRequestsAreLimited(t *testing.T) {
	t.Parallel()
	s := &Server{inflight: newInflightLimit()}
	atOnce := max(1, runtime.GOMAXPROCS(0)/2)
	running, finish := make(chan string, 200), make(chan struct{})
	results := make(chan error, 200)
	ask := func(name string, method access.Method, row *Row, url string) context.CancelFunc {
		ctx, cancel := context.WithCancel(access.WithAsked(t.Context(),
			&access.Asked{Subject: access.Subject{Name: name, Method: method}}))
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		go func() {
			results <- s.limited(httptest.NewRecorder(), r, row, func(http.ResponseWriter, *http.Request) error {
				running <- name
				<-finish
				return nil
			})
		}()
		return cancel
	}
	expect := func(name string, n int) {
		t.Helper()
		for range n {
			select {
			case got := <-running:
				if got != name {
					t.Fatalf("%s runs, want %s", got, name)
				}
			case <-time.After(5 * time.Second):
				t.Fatalf("no request of %s runs", name)
			}
		}
	}
	expensive := &Row{Expensive: true}
	for range atOnce {
		ask("bob", access.ByToken, expensive, "/")
	}
	expect("bob", atOnce)
	var cancels []context.CancelFunc
	for i := range maxWaitingOfUser {
		cancels = append(cancels, ask("bob", access.ByToken, []*Row{expensive, {}}[i%2],
			[]string{"/", "/?dryRun=server"}[i%2]))
	}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		s.inflight.mu.Lock()
		n := s.inflight.users[access.Subject{Name: "bob", Method: access.ByToken}.Budget()].requests
		s.inflight.mu.Unlock()
		if n == atOnce+maxWaitingOfUser {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d requests of bob, want %d", n, atOnce+maxWaitingOfUser)
		}
	}
	ask("bob", access.ByToken, expensive, "/")
	if err := <-results; err == nil {
		t.Error("one too many is let in")
	}
	ask("alice", access.ByToken, expensive, "/")
	expect("alice", 1)
	ask("bob", access.ByToken, &Row{}, "/")
	expect("bob", 1)
	for range 3 {
		ask("root", access.ByLoopback, expensive, "/")
	}
	expect("root", 3)
	for _, cancel := range cancels[:10] {
		cancel()
	}
	for range 10 {
		if err := <-results; err == nil {
			t.Error("a request that was given up ran")
		}
	}
	close(finish)
	for range atOnce + maxWaitingOfUser - 10 + 1 + 1 + 3 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if n := len(s.inflight.users); n != 0 {
		t.Errorf("%d users are kept", n)
	}
}

// TestLargeBodiesAreDecodedInTurn checks that a user's large bodies are decoded and stored one after another, and small ones
// and other users' at once.
func TestLargeBodiesAreDecodedInTurn(t *testing.T) {
	t.Parallel()
	s := New(Config{Store: store.NewMemory()})
	read := func(name string, size int) (ended chan error) {
		ctx := access.WithAsked(t.Context(), &access.Asked{Subject: access.Subject{Name: name, Method: access.ByToken}})
		body := `{"type": "Mesh", "name": "m"}` + strings.Repeat(" ", size)
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/_batch", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		ended = make(chan error, 1)
		go func() {
			_, done, err := s.readDocuments(httptest.NewRecorder(), r, true)
			done()
			ended <- err
		}()
		return ended
	}
	bob := access.WithAsked(t.Context(), &access.Asked{Subject: access.Subject{Name: "bob", Method: access.ByToken}})
	var free []func()
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		done, err := s.inflight.acquire(bob)
		if err != nil {
			t.Fatal(err)
		}
		free = append(free, done)
	}
	waits := read("bob", turnBody)
	for _, ended := range []chan error{read("bob", 100), read("alice", turnBody)} {
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("who need not wait waits")
		}
	}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		s.inflight.mu.Lock()
		requests := s.inflight.users[access.SubjectOf(bob).Budget()].requests
		s.inflight.mu.Unlock()
		if requests > len(free) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("bob's large body takes no turn")
		}
	}
	select {
	case err := <-waits:
		t.Errorf("bob's large body does not wait for his others: %v", err)
	default:
	}
	for _, done := range free {
		done()
	}
	if err := <-waits; err != nil {
		t.Error(err)
	}
	if n := len(s.inflight.users); n != 0 {
		t.Errorf("%d users are kept", n)
	}
}
