package identity_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/zone/identity"
)

func states(t *testing.T, a *identity.Authorities) string {
	t.Helper()
	all, err := a.All("default")
	must(t, err)
	out := ""
	for _, one := range all {
		out += string(one.State()) + " "
	}
	return out
}

func TestRotationByHand(t *testing.T) {
	t.Parallel()
	now := time.Now()
	a := identity.NewAuthorities(identity.Config{Keeper: newKeeper(t), Zone: "zone-1",
		Now: func() time.Time { return now }})
	ctx := t.Context()
	first, err := a.For("default")
	must(t, err)
	svid, err := a.Issue(dataplane(t, "", "x", nil))
	must(t, err)
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, identity.ErrRotation) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	refused("retiring the one that signs", a.Retire(ctx, "default", first.ID(), true))
	refused("promoting the one that signs", a.Promote(ctx, "default", first.ID()))
	next, err := a.Prepare(ctx, "default")
	must(t, err)
	_, err = a.Prepare(ctx, "default")
	refused("a second one", err)
	if got := states(t, a); got != "signing next " {
		t.Errorf("states %s", got)
	}
	if again, err := a.Issue(dataplane(t, "", "x", nil)); err != nil || again.Authority != first.ID() {
		t.Errorf("it signs already: %v", err)
	}
	must(t, a.Promote(ctx, "default", next))
	if again, err := a.Issue(dataplane(t, "", "x", nil)); err != nil || again.Authority != next ||
		svid.Authority != first.ID() {
		t.Errorf("who signs: %v", err)
	}
	refused("retiring while what it signed is in use", a.Retire(ctx, "default", first.ID(), false))
	now = now.Add(identity.Lifetime + time.Hour)
	must(t, a.Retire(ctx, "default", first.ID(), false))
	if err := a.Retire(ctx, "default", first.ID(), false); !errors.Is(err, identity.ErrNoAuthority) {
		t.Errorf("got %v", err)
	}
	if got := states(t, a); got != "signing " {
		t.Errorf("states %s", got)
	}
}

// TestRotationWaits checks that the next authority signs when it is due and every peer knows it, not before. The
// previous one is retired when all certificates that it signed have expired.
func TestRotationWaits(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := 0
	now, unaware := time.Now(), identity.Unaware{Waited: []string{"zone-2"}, Away: []string{"zone-3, offline"}}
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	memory := store.NewMemory()
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	a := identity.NewAuthorities(identity.Config{Keeper: secrets.NewKeeper(memory, box), Zone: "zone-1", Now: clock})
	_, err = memory.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: resource(t, resources.Home{},
		resources.Key{Type: resources.TypeMesh, Name: "default"}, `{}`, nil)}}})
	must(t, err)
	r := &identity.Rotation{
		Store: memory, Authorities: a, Overlap: time.Hour, Now: clock, Log: slog.New(slog.DiscardHandler),
		Known: func(context.Context, string) identity.Unaware { mu.Lock(); defer mu.Unlock(); asked++; return unaware },
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	defer func() { cancel(); must(t, <-done) }()
	becomes := func(want string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); states(t, a) != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("states %s, want %s", states(t, a), want)
			}
		}
	}
	_, err = a.Prepare(t.Context(), "default")
	must(t, err)
	becomes("signing next ")
	mu.Lock()
	now = now.Add(2 * time.Hour) // a connected zone is waited for without a limit
	mu.Unlock()
	mu.Lock()
	before := asked
	mu.Unlock()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		mu.Lock()
		again := asked
		mu.Unlock()
		if again >= before+2 { // it has checked and continued
			break
		}
		if time.Now().After(end) {
			t.Fatal("it does not look")
		}
	}
	becomes("signing next ")
	mu.Lock()
	unaware.Waited = nil // and no zone is away
	mu.Unlock()
	becomes("accepted signing ")
	signing, err := a.For("default")
	must(t, err)
	if got := signing.Unaware(); len(got) != 1 || got[0] != "zone-3, offline" {
		t.Errorf("it does not say that it did not wait for %v", got)
	}
	mu.Lock()
	now = now.Add(identity.Lifetime + time.Hour)
	mu.Unlock()
	becomes("signing ")
}
