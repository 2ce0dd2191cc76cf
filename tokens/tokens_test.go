package tokens

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// bench is one store with any number of issuers and a stopped clock.
type bench struct {
	keeper *secrets.Keeper
	mu     sync.Mutex
	at     time.Time
}

func newBench(t testing.TB) *bench {
	t.Helper()
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return &bench{keeper: secrets.NewKeeper(store.NewMemory(), box), at: start}
}

func (b *bench) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at
}

func (b *bench) advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = b.at.Add(d)
}

func (b *bench) issuer(t testing.TB, name string) *Issuer {
	t.Helper()
	i, err := Open(t.Context(), Config{Keeper: b.keeper, Name: name, Now: b.now,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func issue(t testing.TB, i *Issuer, c Claims) (string, Claims) {
	t.Helper()
	token, issued, err := i.Issue(t.Context(), c, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return token, issued
}

func TestWhatIsIssuedIsRead(t *testing.T) {
	i := newBench(t).issuer(t, "")
	for _, c := range []Claims{
		{Audience: AudienceJoin, Subject: "zone-1", Zone: "zone-1"},
		{Audience: AudienceDataplane, Subject: "backend", Mesh: "default", Dataplane: "backend",
			Labels: map[string]string{"app": "backend"}},
		{Audience: AudienceDataplane, Subject: "w", Mesh: "default", Workload: "w"},
		{Audience: AudienceUser, Subject: "ann", Groups: []string{"owners", "mesh-system:admin"}, Scopes: []string{"read"}},
	} {
		token, issued := issue(t, i, c)
		got, err := i.Verify(token, c.Audience)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []*time.Time{&got.IssuedAt, &got.NotBefore, &got.Expires} {
			*at = at.UTC()
		}
		if issued.ID == "" || !reflect.DeepEqual(got, issued) {
			t.Errorf("got  %+v\nwant %+v", got, issued)
		}
	}
}

func TestATokenEnds(t *testing.T) {
	b := newBench(t)
	i := b.issuer(t, "")
	token, issued := issue(t, i, Claims{Audience: AudienceUser})
	b.advance(time.Hour - time.Second)
	if _, err := i.Verify(token, AudienceUser); err != nil {
		t.Fatal(err)
	}
	b.advance(time.Second)
	if _, err := i.Verify(token, AudienceUser); !errors.Is(err, ErrExpired) {
		t.Fatalf("at %s: got %v", issued.Expires, err)
	}
}

func TestUsedOnce(t *testing.T) {
	b := newBench(t)
	issuers := []*Issuer{b.issuer(t, ""), b.issuer(t, "")}
	_, c := issue(t, issuers[0], Claims{Audience: AudienceJoin})
	var wg sync.WaitGroup
	results := make([]error, 8)
	for n := range results {
		wg.Go(func() { results[n] = issuers[n%2].Use(t.Context(), c.ID, c.Expires) })
	}
	wg.Wait()
	taken := 0
	for _, err := range results {
		switch {
		case err == nil:
			taken++
		case !errors.Is(err, ErrUsed):
			t.Error(err)
		}
	}
	if taken != 1 {
		t.Errorf("it was used %d times", taken)
	}
}

// TestIDsAreForgotten checks that ids are forgotten only once their tokens have expired on every clock, and that their
// number is bounded.
func TestIDsAreForgotten(t *testing.T) {
	b := newBench(t)
	i := b.issuer(t, "")
	for n := range 3 {
		if err := i.Revoke(t.Context(), fmt.Sprint("id-", n), start.Add(time.Duration(n+1)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	b.advance(2*time.Hour + afterExpiry + time.Second)
	if err := i.Revoke(t.Context(), "another", start.Add(48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(i.RevokedIDs()); got != "[another id-2]" {
		t.Errorf("remembered: %s", got)
	}
	full := ids{}
	for n := range maxIDs {
		full[fmt.Sprint(n)] = start
	}
	if err := full.add("one more", start.Add(time.Hour), start); !errors.Is(err, ErrFull) {
		t.Errorf("got %v", err)
	}
	if err := full.add("one more", start.Add(48*time.Hour), start.Add(25*time.Hour)); err != nil || len(full) != 1 {
		t.Errorf("%d remembered, %v", len(full), err)
	}
}

// TestReplicaAheadForgetsNoRevocation: a replica whose clock is ahead revokes another token. What is over by its clock
// alone stays revoked, and used, on the other replicas.
func TestReplicaAheadForgetsNoRevocation(t *testing.T) {
	b := newBench(t)
	slow := b.issuer(t, "")
	fast, err := Open(t.Context(), Config{Keeper: b.keeper, Now: func() time.Time { return b.now().Add(time.Hour) },
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	token, c, err := slow.Issue(t.Context(), Claims{Audience: AudienceUser, Subject: "mallory"}, 30*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := slow.Revoke(t.Context(), c.ID, c.Expires); err != nil {
		t.Fatal(err)
	}
	if err := slow.Use(t.Context(), "once", c.Expires); err != nil {
		t.Fatal(err)
	}
	if err := fast.Revoke(t.Context(), "another", start.Add(48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := fast.Use(t.Context(), "another", start.Add(48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := slow.Verify(token, AudienceUser); !errors.Is(err, ErrRevoked) {
		t.Errorf("the token: %v", err)
	}
	if err := slow.Use(t.Context(), "once", c.Expires); !errors.Is(err, ErrUsed) {
		t.Errorf("the token for one use: %v", err)
	}
}

func TestRevokedIsTold(t *testing.T) {
	b := newBench(t)
	i, other := b.issuer(t, ""), b.issuer(t, "")
	done := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { done <- i.Run(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	token, c := issue(t, i, Claims{Audience: AudienceUser})
	for step, act := range []func() error{
		func() error { return other.Revoke(t.Context(), "somebody else", c.Expires) },
		func() error { _, err := other.Rotate(t.Context()); return err },
		func() error { return other.Revoke(t.Context(), c.ID, c.Expires) },
	} {
		told := i.Revoked()
		if err := act(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-told:
		case <-time.After(30 * time.Second):
			t.Fatalf("step %d was not told", step)
		}
	}
	if _, err := i.Verify(token, AudienceUser); !errors.Is(err, ErrRevoked) {
		t.Errorf("got %v", err)
	}
}

func TestWhatIsNotIssued(t *testing.T) {
	i := newBench(t).issuer(t, "")
	for _, row := range []struct {
		name string
		c    Claims
		ttl  time.Duration
	}{
		{"no audience", Claims{}, time.Hour},
		{"no time", Claims{Audience: AudienceUser}, 0},
		{"too long a time", Claims{Audience: AudienceUser}, MaxLifetime + time.Hour},
		{"too large", Claims{Audience: AudienceUser, Subject: strings.Repeat("x", maxTokenBytes)}, time.Hour},
	} {
		if token, _, err := i.Issue(t.Context(), row.c, row.ttl); !errors.Is(err, ErrClaims) || token != "" {
			t.Errorf("%s: got %v", row.name, err)
		}
	}
}
