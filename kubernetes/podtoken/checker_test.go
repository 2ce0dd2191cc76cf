package podtoken_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/podtoken"
)

// good is the status of a review of a token that is bound to a pod.
const good = `{"authenticated": true, "audiences": ["causeway-proxy"], "user": {"username": "system:serviceaccount:shop:backend", "uid": "sa-1",
 "groups": ["system:serviceaccounts"], "extra": {"authentication.kubernetes.io/pod-name": ["backend-1"],
 "authentication.kubernetes.io/pod-uid": ["pod-1"], "authentication.kubernetes.io/node-name": ["node-1"]}}}`

// TestPodOfAToken: a token is that of a pod, and is asked about once for what is opened together. When the pod is
// deleted, or the token expires, it is no more.
func TestPodOfAToken(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	token := g.token("a")
	want := podtoken.Pod{Namespace: "shop", Name: "backend-1", UID: "pod-1", ServiceAccount: "backend", Expires: g.now().Add(time.Hour).Local()}
	for range 3 {
		if got, err := g.Check(t.Context(), token); err != nil || got != want {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if g.asked.Load() != 1 {
		t.Errorf("it asks %d times", g.asked.Load())
	}
	g.set(201, `{"authenticated": false, "error": "pod is gone"}`, 11*time.Second)
	if got, err := g.Check(t.Context(), token); !errors.Is(err, podtoken.ErrRefused) {
		t.Errorf("after the pod was deleted: %+v, %v", got, err)
	}
	g.set(201, good, 11*time.Second)
	if _, err := g.Check(t.Context(), token); err != nil {
		t.Error(err)
	}
	g.set(201, good, time.Hour)
	if got, err := g.Check(t.Context(), token); !errors.Is(err, podtoken.ErrRefused) || !strings.Contains(err.Error(), "expired") {
		t.Errorf("after its time: %+v, %v", got, err)
	}
}

// TestTokensThatProveNoPod: each row is something else than a valid token, for us, that is bound to a pod.
func TestTokensThatProveNoPod(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for name, says := range map[string]string{
		"not valid":           `{"error": "invalid bearer token"}`,
		"valid with an error": strings.Replace(good, `"authenticated": true`, `"authenticated": true, "error": "no"`, 1),
		"not authenticated":   strings.Replace(good, `"authenticated": true`, `"authenticated": false`, 1),
		"another audience":    strings.Replace(good, "causeway-proxy", "https://kubernetes.default.svc", 1),
		"no audiences known":  strings.Replace(good, `["causeway-proxy"]`, "[]", 1),
		"a user":              strings.Replace(good, "system:serviceaccount:shop:backend", "alice", 1),
		"no namespace":        strings.Replace(good, "serviceaccount:shop:", "serviceaccount::", 1),
		"no account":          strings.Replace(good, "shop:backend", "shop", 1),
		"no pod":              strings.Replace(good, "kubernetes.io/pod-name", "kubernetes.io/other", 1),
		"no UID":              strings.Replace(good, "kubernetes.io/pod-uid", "kubernetes.io/other", 1),
		"two pods":            strings.Replace(good, `["backend-1"]`, `["backend-1", "backend-2"]`, 1),
		"nothing":             `{}`,
	} {
		g.set(201, says, 0)
		if got, err := g.Check(t.Context(), g.token(name)); !errors.Is(err, podtoken.ErrRefused) || got.Name != "" && err == nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	before := g.asked.Load()
	for _, token := range []string{"", "a.b", "a.b.c.d", "a.b.c\n", "ä.b.c", strings.Repeat("a", 8<<10) + ".b.c"} {
		if got, err := g.Check(t.Context(), token); !errors.Is(err, podtoken.ErrRefused) {
			t.Errorf("%.20q: %+v, %v", token, got, err)
		}
	}
	if after := g.asked.Load(); after != before {
		t.Errorf("what is no token is asked about %d times", after-before)
	}
}

// TestAnAPIServerThatDoesNotSay: nobody is refused for good, or admitted, because the API server does not answer. Then it
// is not asked again at once.
func TestAnAPIServerThatDoesNotSay(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for _, code := range []int{401, 403, 429, 500, 503} {
		token := g.token(fmt.Sprint(code))
		g.set(code, "{}", 0)
		for range 3 {
			if got, err := g.Check(t.Context(), token); !errors.Is(err, podtoken.ErrUnknown) || got != (podtoken.Pod{}) {
				t.Errorf("%d: %+v, %v", code, got, err)
			}
		}
		g.set(201, good, 2*time.Second)
		if _, err := g.Check(t.Context(), token); err != nil {
			t.Errorf("once it is back: %v", err)
		}
	}
	if g.asked.Load() != 10 {
		t.Errorf("it is asked %d times, want 10", g.asked.Load())
	}
}

// TestManyWaitForOneAnswer: questions about one token are one, and a caller that goes does not take the answer along.
func TestManyWaitForOneAnswer(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.mu.Lock()
	g.hold = make(chan struct{})
	hold := g.hold
	g.mu.Unlock()
	token := g.token("a")
	gone, leave := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := g.Check(gone, token)
		first <- err
	}()
	for deadline := time.Now().Add(30 * time.Second); g.asked.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not ask")
		}
	}
	leave()
	if err := <-first; !errors.Is(err, podtoken.ErrUnknown) {
		t.Errorf("who went: %v", err)
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if pod, err := g.Check(t.Context(), token); err != nil || pod.Name != "backend-1" {
				t.Errorf("%+v, %v", pod, err)
			}
		})
	}
	close(hold)
	all.Wait()
	if g.asked.Load() != 1 {
		t.Errorf("it asks %d times", g.asked.Load())
	}
}
