package podtoken_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/kubernetes/podtoken"
)

// good is the status of a review of a token that is bound to a pod.
const good = `{"authenticated": true, "audiences": ["causeway-proxy"], "user": {"username": "system:serviceaccount:shop:backend", "uid": "sa-1",
 "groups": ["system:serviceaccounts"], "extra": {"authentication.kubernetes.io/pod-name": ["backend-1"],
 "authentication.kubernetes.io/pod-uid": ["pod-1"], "authentication.kubernetes.io/node-name": ["node-1"]}}}`

// rig is an API server that judges tokens, and a checker that asks it.
type rig struct {
	*podtoken.Checker

	asked atomic.Int64
	mu    sync.Mutex
	clock time.Time     // guarded by mu
	says  string        // guarded by mu; the status of each review
	code  int           // guarded by mu
	hold  chan struct{} // closed: answers come at once
}

func newRig(t *testing.T) *rig {
	t.Helper()
	g := &rig{clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), says: good, code: http.StatusCreated, hold: make(chan struct{})}
	close(g.hold)
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.asked.Add(1)
		raw, err := io.ReadAll(r.Body)
		var asked struct {
			Kind string
			Spec struct{ Audiences []string }
		}
		if err != nil || r.URL.Path != "/apis/authentication.k8s.io/v1/tokenreviews" || json.Unmarshal(raw, &asked) != nil ||
			asked.Kind != "TokenReview" || len(asked.Spec.Audiences) != 1 || asked.Spec.Audiences[0] != podtoken.Audience {
			t.Errorf("it asks %s %s", r.URL, raw)
		}
		g.mu.Lock()
		hold, code, says := g.hold, g.code, g.says
		g.mu.Unlock()
		select {
		case <-hold:
		case <-r.Context().Done():
		}
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"status": %s}`, says)
	}))
	t.Cleanup(srv.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	err := errors.Join(os.WriteFile(path+".ca", ca, 0o600),
		os.WriteFile(path, fmt.Appendf(nil, `{"current-context": "it", "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
"clusters": [{"name": "it", "cluster": {"server": %q, "certificate-authority": %q}}], "users": [{"name": "it", "user": {"token": "t"}}]}`, srv.URL, path+".ca"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	client, err := apiserver.Connect(apiserver.Config{Kubeconfig: path})
	if err != nil {
		t.Fatal(err)
	}
	g.Checker = podtoken.New(client, g.now)
	return g
}

func (g *rig) now() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.clock
}

func (g *rig) set(code int, says string, later time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.code, g.says, g.clock = code, says, g.clock.Add(later)
}

// token is one that ends in an hour, of the form of Kubernetes'.
func (g *rig) token(name string) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"RS256","kid":"k"}`)) + "." +
		part(fmt.Appendf(nil, `{"aud":["causeway-proxy"],"exp":%d,"sub":%q}`, g.now().Add(time.Hour).Unix(), name)) + "." + part([]byte("signed"))
}

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
	g.set(201, good, 0)
	if got, err := g.Check(t.Context(), "e30.e30.c2ln"); !errors.Is(err, podtoken.ErrRefused) {
		t.Errorf("without an end: %+v, %v", got, err)
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
	for deadline := time.Now().Add(30 * time.Second); g.asked.Load() == 0; {
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
