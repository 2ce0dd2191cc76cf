package api

import (
	"testing"

	"github.com/causeway-mesh/causeway/access"
)

// TestWatchesAreBounded checks that the waiting lists of each user are limited, those of callers over loopback are not,
// and finished ones leave nothing behind.
func TestWatchesAreBounded(t *testing.T) {
	t.Parallel()
	w := &watches{users: map[string]int{}}
	var leave []func()
	enter := func(name string, method access.Method, want bool) {
		t.Helper()
		done, err := w.enter(access.WithAsked(t.Context(), &access.Asked{Subject: access.Subject{Name: name, Method: method}}))
		if (err == nil) != want {
			t.Errorf("one of %s by %s: %v", name, method, err)
		}
		if err == nil {
			leave = append(leave, done)
		}
	}
	for range maxWatchesOfUser {
		enter("bob", access.ByToken, true)
	}
	enter("bob", access.ByToken, false)
	enter("alice", access.ByToken, true)
	leave[0]()
	leave = leave[1:]
	enter("bob", access.ByToken, true)
	for range maxWatchesOfUser + 1 {
		enter("root", access.ByLoopback, true)
	}
	for _, done := range leave {
		done()
	}
	if len(w.users) != 0 {
		t.Errorf("%v are kept", w.users)
	}
}
