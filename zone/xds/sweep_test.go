package xds

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/tokens"
)

// swept is an Admission with open streams that showed tokens, and counts how often a token is verified.
type swept struct {
	*Admission
	issuer   *tokens.Issuer
	verified int
	locked   int // verifications while the lock was held that opening and closing a stream take
	ended    map[string]bool
	later    time.Duration
}

func newSwept(t testing.TB, streams int) *swept {
	t.Helper()
	s := &swept{ended: map[string]bool{}}
	now := func() time.Time {
		s.verified++
		if s.Admission != nil {
			if s.mu.TryLock() {
				s.mu.Unlock()
			} else {
				s.locked++
			}
		}
		return time.Now().Add(s.later)
	}
	var err error
	s.issuer, err = tokens.Open(t.Context(), tokens.Config{Keeper: secrets.NewKeeper(store.NewMemory(), testBox()),
		Now: now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s.Admission = NewAdmission(AdmissionConfig{
		Tokens: s.issuer, Now: func() time.Time { return time.Now().Add(s.later) }, Log: slog.New(slog.DiscardHandler),
	})
	for i := range streams {
		id := fmt.Sprint("token-", i)
		token, claims, err := s.issuer.Issue(t.Context(), tokens.Claims{ID: id, Audience: tokens.AudienceDataplane,
			Mesh: "default", Dataplane: id}, time.Hour+time.Duration(i)*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		p := &pass{admission: s.Admission, method: methodToken, token: token, claims: claims, until: claims.Expires}
		p.open(func(error) { s.ended[id] = true })
	}
	s.sweep()
	s.verified, s.locked = 0, 0
	return s
}

// TestTokensAreVerifiedWhenSomethingChanged: a look at open streams verifies no token again, unless keys, revocations
// or its own time say so, and never while streams wait to open.
func TestTokensAreVerifiedWhenSomethingChanged(t *testing.T) {
	t.Parallel()
	s := newSwept(t, 20)
	if wait, some := s.sweep(); s.verified != 0 || !some || wait > time.Hour {
		t.Errorf("with nothing new, %d tokens were verified; the next look is due in %s (%t)", s.verified, wait, some)
	}
	s.later = time.Hour + 90*time.Second // the first two have expired
	s.sweep()
	if s.verified != 2 || len(s.ended) != 2 || !s.ended["token-0"] || !s.ended["token-1"] {
		t.Errorf("two expired, %d were verified, ended are %v", s.verified, s.ended)
	}
	if err := s.issuer.Revoke(t.Context(), "token-7", time.Now().Add(24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	s.verified = 0
	s.sweep()
	if s.verified < 18 || len(s.ended) != 3 || !s.ended["token-7"] {
		t.Errorf("one was revoked: %d were verified, ended are %v", s.verified, s.ended)
	}
	s.later = -time.Hour // a clock that is set back makes tokens of the future of them
	s.sweep()
	if len(s.ended) != 20 {
		t.Errorf("before they are valid, %d of 20 have ended", len(s.ended))
	}
	if s.locked > 0 {
		t.Errorf("%d tokens were verified while streams wait to open", s.locked)
	}
}

// BenchmarkSweep is what Run does every 5 s for 10,000 proxies with tokens.
func BenchmarkSweep(b *testing.B) {
	s := newSwept(b, 10_000)
	for b.Loop() {
		s.sweep()
	}
}
