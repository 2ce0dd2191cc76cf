package global

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/tokens"
)

// watched returns an admission on a store in memory, and its log.
func watched(t *testing.T) (*admission, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	s := store.NewMemory()
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	keeper := secrets.NewKeeper(s, box)
	issuer, err := tokens.Open(t.Context(), tokens.Config{Keeper: keeper, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := resources.NewSpec(resources.TypeZone, []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	zone := &resources.Resource{Key: kds.ZoneKey("zone-1"), Labels: map[string]string{}, Spec: spec}
	if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: zone}}}); err != nil {
		t.Fatal(err)
	}
	return &admission{
		store: s, registry: enrolment.NewRegistry(keeper, time.Now), keeper: keeper, tokens: issuer, allowTokens: true, now: time.Now,
		audit: auditor{log: slog.New(slog.DiscardHandler)}, log: slog.New(slog.NewTextHandler(log, nil)),
		rechecks: rechecks{store: s},
	}, log
}

// watch runs the admission, and its issuer, until the function that it returns is called.
func (a *admission) watch(t *testing.T, all sessions) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = a.run(ctx, all) })
	running.Go(func() { _ = a.tokens.Run(ctx) })
	return func() { cancel(); running.Wait() }
}

// asked is one session, whose pass was asked already.
type asked struct {
	pass  kds.Pass
	until time.Time
	ended func()
	all   int // how often all passes were asked
}

// Recheck implements sessions.
func (s *asked) Recheck() {
	s.all++
	if s.pass != nil && s.pass.Err() != nil {
		s.ended()
	}
}

// RecheckDue implements sessions.
func (s *asked) RecheckDue() {
	if !s.until.IsZero() && !time.Now().Before(s.until) {
		s.Recheck()
	}
}

// TestAnonymousIsWarnedOfEachMinute checks that the warning appears at once and then every minute, and not where no
// anonymous zone is admitted.
func TestAnonymousIsWarnedOfEachMinute(t *testing.T) {
	t.Parallel()
	for allowed, want := range map[bool]int{true: 11, false: 0} {
		synctest.Test(t, func(t *testing.T) {
			a, log := watched(t)
			a.allowAnonymous = allowed
			stop := a.watch(t, &asked{})
			time.Sleep(10*time.Minute + 30*time.Second)
			stop()
			if n := strings.Count(log.String(), "without credentials"); n != want {
				t.Errorf("allowed is %t: %d warnings in ten and a half minutes, want %d", allowed, n, want)
			}
		})
	}
}

// mostAfterTheEnd bounds how long a session may outlive its credential.
const mostAfterTheEnd = 5 * time.Second

// TestSessionsAreAskedInTime checks that a session ends within seconds of the expiry or revocation of its credential,
// and not before.
func TestSessionsAreAskedInTime(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		withdraw func(*admission, tokens.Claims) error
		after    time.Duration
	}{
		"expired": {func(*admission, tokens.Claims) error { return nil }, time.Hour},
		"token": {func(a *admission, c tokens.Claims) error {
			return a.tokens.Revoke(context.Background(), c.ID, c.Expires)
		}, 10 * time.Minute},
		"all of them": {func(a *admission, _ tokens.Claims) error { return a.withdrawn("zone-1") }, 10 * time.Minute},
		"its key": {func(a *admission, _ tokens.Claims) error {
			before := a.tokens.Keys()[0].ID
			if _, err := a.tokens.Rotate(context.Background()); err != nil {
				return err
			}
			return a.tokens.Retire(context.Background(), before)
		}, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, _ := watched(t)
				token, claims, err := a.tokens.Issue(t.Context(), tokens.Claims{Subject: "zone-1",
					Audience: tokens.AudienceZone, Zone: "zone-1", Scopes: []string{scopeControlPlane}}, time.Hour)
				if err != nil {
					t.Fatal(err)
				}
				err = a.registry.Update(t.Context(), "zone-1", func(m *enrolment.Record) error {
					m.Tokens = append(m.Tokens, enrolment.IssuedToken{ID: claims.ID, Issued: claims.IssuedAt, Expires: claims.Expires})
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				pass, err := a.byToken(t.Context(), token, "zone-1")
				if err != nil {
					t.Fatal(err)
				}
				start, ended := time.Now(), time.Time{}
				stop := a.watch(t, &asked{pass: pass, until: pass.Until(), ended: func() {
					if ended.IsZero() {
						ended = time.Now()
					}
				}})
				time.Sleep(row.after)
				if err := row.withdraw(a, claims); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				stop()
				if late := ended.Sub(start.Add(row.after)); ended.IsZero() || late < 0 || late > mostAfterTheEnd {
					t.Errorf("the session ended %s after its credential", late)
				}
			})
		})
	}
}

// TestTokenInUseIsRevokedWhateverTheClocksSay revokes or deletes a zone by a server whose clock is behind, while a token of another
// issuer is in use that is newer by the times: it ends with its session, and does not come back. One that is issued
// afterwards is good.
func TestTokenInUseIsRevokedWhateverTheClocksSay(t *testing.T) {
	t.Parallel()
	for name, deleted := range map[string]bool{"revoked": false, "deleted, and made anew": true} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { revokedInUse(t, deleted) }) })
	}
}

func revokedInUse(t *testing.T, deleted bool) {
	a, _ := watched(t)
	issue := func() string {
		token, _, err := a.tokens.Issue(t.Context(), tokens.Claims{Subject: "zone-1", Audience: tokens.AudienceZone,
			Zone: "zone-1", Scopes: []string{scopeControlPlane}}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return token // the zone's record does not list it, as those of other issuers
	}
	change := func(change func(*enrolment.Record)) {
		err := a.registry.Update(t.Context(), "zone-1", func(m *enrolment.Record) error { change(m); return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	change(func(m *enrolment.Record) { m.Withdraw(a.now()) }) // so that there is a record
	time.Sleep(time.Hour)
	old := issue()
	pass, err := a.byToken(t.Context(), old, "zone-1")
	if err != nil || pass.Err() != nil {
		t.Fatal(err, pass.Err())
	}
	behind := a.now().Add(-10 * time.Minute)
	change(func(m *enrolment.Record) {
		if m.Withdraw(behind); deleted {
			m.DeletedAt = behind
		}
	})
	if err := pass.Err(); !errors.Is(err, kds.ErrUnauthenticated) {
		t.Errorf("its session: %v", err)
	}
	change(func(m *enrolment.Record) { m.DeletedAt = time.Time{} })
	if _, err := a.byToken(t.Context(), old, "zone-1"); !errors.Is(err, kds.ErrUnauthenticated) {
		t.Errorf("the token, again: %v", err)
	}
	time.Sleep(2 * time.Second)
	if _, err := a.byToken(t.Context(), issue(), "zone-1"); err != nil {
		t.Errorf("a token from afterwards: %v", err)
	}
}

// withdrawn revokes the zone's credentials.
func (a *admission) withdrawn(zone string) error {
	return a.registry.Update(context.Background(), zone, func(m *enrolment.Record) error {
		m.Withdraw(a.now())
		return nil
	})
}
