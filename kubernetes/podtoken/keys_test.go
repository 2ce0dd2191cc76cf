package podtoken_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/causeway-mesh/causeway/kubernetes/podtoken"
)

// TestKeysThatAreReplaced: a new key and a new issuer are found by another look, 10 s after the last. What a withdrawn key
// signed is refused here, and what an earlier issuer's is for the API server to judge.
func TestKeysThatAreReplaced(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	next := newSigner(t, "next")
	of := func(named, subject string) string {
		return signed(t, next.method, next.id, next.key, with(g.claims(subject), "iss", named))
	}
	check := func(what, token string, want error) {
		t.Helper()
		if got, err := g.Check(t.Context(), token); !errors.Is(err, want) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	check("the first", g.token("a"), nil)
	old := g.token("old")
	g.publishes(http.StatusOK, issuer, published(next))
	check("a key that is new, at once", of(issuer, "a"), podtoken.ErrRefused)
	check("one that was read", g.token("b"), nil)
	g.set(http.StatusCreated, good, 10*time.Second)
	check("a key that is new, later", of(issuer, "a"), nil)
	check("one that was withdrawn", old, podtoken.ErrRefused)

	g.publishes(http.StatusOK, "https://new.example", published(next))
	g.set(http.StatusCreated, good, 10*time.Second)
	check("a new issuer", of("https://new.example", "b"), nil)
	check("the issuer before", of(issuer, "b"), nil)
	check("a stranger as issuer", of("https://elsewhere.example", "b"), podtoken.ErrRefused)
	if g.looks.Load() != 6 || g.asked.Load() != 5 {
		t.Errorf("%d requests for keys and %d reviews, want 6 and 5", g.looks.Load(), g.asked.Load())
	}

	g.publishes(http.StatusOK, issuer, published(g.cluster))
	g.set(http.StatusCreated, good, 11*time.Minute)
	deadline := time.Now().Add(time.Minute)
	for i := 0; ; i++ { // the look is under way while tokens are judged by what was read before
		_, err := g.Check(t.Context(), of(issuer, fmt.Sprint(i)))
		if errors.Is(err, podtoken.ErrRefused) {
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("a key that was withdrawn 10 minutes ago: %v", err)
		}
	}
}

// TestKeysThatCannotBeRead: nobody is admitted or refused for good, and the API server is asked once in 10 s. Once they
// were read, they hold while the API server is away.
func TestKeysThatCannotBeRead(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	secret := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: []byte("secret"), KeyID: "cluster"}}}
	private := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: g.cluster.key, KeyID: "cluster"}}}
	looks := int64(0)
	for _, row := range []struct {
		name, issuer string
		code         int
		keys         any
		wants        string
		asks         int64
	}{
		{"not permitted", issuer, http.StatusForbidden, nil, "403", 1},
		{"not served", issuer, http.StatusNotFound, nil, "--service-account-issuer", 1},
		{"down", issuer, http.StatusServiceUnavailable, nil, "503", 1},
		{"no issuer", "", http.StatusOK, published(g.cluster), "issuer", 2},
		{"no keys", issuer, http.StatusOK, published(), "0 of them can verify", 2},
		{"a secret for a key", issuer, http.StatusOK, secret, "0 of them can verify", 2},
		{"a private key", issuer, http.StatusOK, private, "0 of them can verify", 2},
		{"no set", issuer, http.StatusOK, []string{"keys"}, "cannot unmarshal", 2},
		{"too long", issuer, http.StatusOK, map[string]string{"a": strings.Repeat("a", 300<<10)}, "bytes", 2},
	} {
		g.publishes(row.code, row.issuer, row.keys)
		for range 5 {
			got, err := g.Check(t.Context(), g.token(row.name))
			if !errors.Is(err, podtoken.ErrUnknown) || errors.Is(err, podtoken.ErrRefused) || !strings.Contains(err.Error(), row.wants) {
				t.Errorf("%s: %+v, %v", row.name, got, err)
			}
		}
		if _, err := g.Check(t.Context(), "a.b.c"); !errors.Is(err, podtoken.ErrRefused) {
			t.Errorf("%s, what is no token: %v", row.name, err)
		}
		if looks += row.asks; g.looks.Load() != looks || g.asked.Load() != 0 || g.Kept() != 0 {
			t.Errorf("%s: %d requests for keys, want %d; %d reviews", row.name, g.looks.Load(), looks, g.asked.Load())
		}
		g.set(http.StatusCreated, good, 10*time.Second)
	}
	mixed := []any{map[string]string{"kty": "new", "kid": "new"}, g.cluster.jwk()}
	g.publishes(http.StatusOK, issuer, map[string]any{"keys": mixed})
	if _, err := g.Check(t.Context(), g.token("back")); err != nil {
		t.Errorf("once they can be read: %v", err)
	}
	g.publishes(http.StatusServiceUnavailable, "", nil)
	g.set(http.StatusCreated, good, time.Hour)
	other := newSigner(t, "other")
	for range 2 {
		if _, err := g.Check(t.Context(), signed(t, other.method, other.id, other.key, g.claims("a"))); !errors.Is(err, podtoken.ErrUnknown) {
			t.Errorf("an unknown key while they cannot be read: %v", err)
		}
		if _, err := g.Check(t.Context(), g.token("a")); err != nil {
			t.Errorf("a known one: %v", err)
		}
	}
}

// TestManyWaitForOneLook: who comes while the keys are read waits for that, and who leaves does not end it.
func TestManyWaitForOneLook(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	type call struct {
		token string
		want  error
	}
	own := g.token("a")
	calls := []call{{own, nil}}
	for i := range 30 {
		other := newSigner(t, fmt.Sprint("key-", i))
		calls = append(calls, call{own, nil}, call{signed(t, other.method, other.id, other.key, g.claims("a")), podtoken.ErrRefused})
	}
	hold := make(chan struct{})
	g.mu.Lock()
	g.holdsKeys = hold
	g.mu.Unlock()
	gone, leave := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := g.Check(gone, own)
		first <- err
	}()
	for deadline := time.Now().Add(30 * time.Second); g.looks.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not look")
		}
	}
	leave()
	if err := <-first; !errors.Is(err, podtoken.ErrUnknown) {
		t.Errorf("who left: %v", err)
	}
	var all sync.WaitGroup
	for _, c := range calls {
		all.Go(func() {
			if _, err := g.Check(t.Context(), c.token); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
	close(hold)
	all.Wait()
	if g.looks.Load() != 2 || g.asked.Load() != 1 {
		t.Errorf("%d requests for keys and %d reviews, want 2 and 1", g.looks.Load(), g.asked.Load())
	}
}
