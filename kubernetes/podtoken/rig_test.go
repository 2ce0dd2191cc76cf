package podtoken_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/kubernetes/podtoken"
)

const issuer = "https://kubernetes.default.svc.cluster.local"

// signer is a key that signs tokens.
type signer struct {
	id     string
	method jwt.SigningMethod
	key    crypto.Signer
}

// jwk is the key as an API server publishes it.
func (s *signer) jwk() jose.JSONWebKey {
	return jose.JSONWebKey{Key: s.key.Public(), KeyID: s.id, Algorithm: s.method.Alg(), Use: "sig"}
}

// rsaKey is a key of the kind that clusters have. To make one takes long.
var rsaKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newSigner(t *testing.T, id string) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &signer{id: id, method: jwt.SigningMethodES256, key: key}
}

// rig is an API server that signs and judges tokens, and a checker that asks it.
type rig struct {
	*podtoken.Checker

	t       *testing.T
	cluster *signer      // signs the tokens of the rig
	asked   atomic.Int64 // reviews
	looks   atomic.Int64 // requests for the issuer or the keys

	mu        sync.Mutex
	clock     time.Time     // guarded by mu
	says      string        // guarded by mu: the status of each review
	code      int           // guarded by mu: that of reviews
	hold      chan struct{} // guarded by mu; closed: answers about tokens come at once
	issuer    string        // guarded by mu
	keys      any           // guarded by mu: the published keys
	keysCode  int           // guarded by mu
	holdsKeys chan struct{} // guarded by mu; closed: keys come at once
}

func newRig(t *testing.T) *rig {
	t.Helper()
	key, err := rsaKey()
	if err != nil {
		t.Fatal(err)
	}
	g := &rig{t: t, cluster: &signer{id: "cluster", method: jwt.SigningMethodRS256, key: key}, says: good, code: http.StatusCreated,
		clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), hold: make(chan struct{}), holdsKeys: make(chan struct{})}
	close(g.hold)
	close(g.holdsKeys)
	g.publishes(http.StatusOK, issuer, published(g.cluster))
	srv := httptest.NewTLSServer(g)
	t.Cleanup(srv.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	err = errors.Join(os.WriteFile(path+".ca", ca, 0o600),
		os.WriteFile(path, fmt.Appendf(nil, `{"current-context": "it", "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
"clusters": [{"name": "it", "cluster": {"server": %q, "certificate-authority": %q}}], "users": [{"name": "it", "user": {"token": "t"}}]}`, srv.URL, path+".ca"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	client, err := apiserver.Connect(apiserver.Config{Kubeconfig: path, RequestsPerSecond: 20_000})
	if err != nil {
		t.Fatal(err)
	}
	g.Checker = podtoken.New(client, g.now)
	return g
}

// published are keys as an API server publishes them.
func published(all ...*signer) jose.JSONWebKeySet {
	var set jose.JSONWebKeySet
	for _, s := range all {
		set.Keys = append(set.Keys, s.jwk())
	}
	return set
}

// ServeHTTP implements http.Handler.
func (g *rig) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer t" {
		g.t.Errorf("it asks for %s without its credential", r.URL)
	}
	g.mu.Lock()
	code, keys, named, holdsKeys := g.keysCode, g.keys, g.issuer, g.holdsKeys
	g.mu.Unlock()
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		g.looks.Add(1)
		select {
		case <-holdsKeys:
		case <-r.Context().Done():
		}
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": named, "jwks_uri": "https://127.0.0.1:1/elsewhere"})
	case "/openid/v1/jwks":
		g.looks.Add(1)
		if !slices.Contains(strings.Split(r.Header.Get("Accept"), ", "), "application/jwk-set+json") {
			code = http.StatusNotAcceptable // as the API server
		}
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(keys)
	default:
		g.review(w, r)
	}
}

func (g *rig) review(w http.ResponseWriter, r *http.Request) {
	g.asked.Add(1)
	raw, err := io.ReadAll(r.Body)
	var asked struct {
		Kind string
		Spec struct{ Audiences []string }
	}
	if err != nil || r.URL.Path != "/apis/authentication.k8s.io/v1/tokenreviews" || json.Unmarshal(raw, &asked) != nil ||
		asked.Kind != "TokenReview" || len(asked.Spec.Audiences) != 1 || asked.Spec.Audiences[0] != podtoken.Audience {
		g.t.Errorf("it asks %s %s", r.URL, raw)
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
}

func (g *rig) now() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.clock
}

// set sets what reviews answer, and moves the clock.
func (g *rig) set(code int, says string, later time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.code, g.says, g.clock = code, says, g.clock.Add(later)
}

// publishes sets what the API server answers who looks at its keys.
func (g *rig) publishes(code int, named string, keys any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keysCode, g.issuer, g.keys = code, named, keys
}

// claims are those of a token that is new and ends in an hour, in the form of Kubernetes'.
func (g *rig) claims(subject string) jwt.MapClaims {
	now := g.now()
	return jwt.MapClaims{"iss": issuer, "aud": []string{podtoken.Audience}, "sub": subject, "iat": now.Unix(), "nbf": now.Unix(),
		"exp": now.Add(time.Hour).Unix()}
}

// token is one of the cluster, for a pod.
func (g *rig) token(subject string) string {
	return signed(g.t, g.cluster.method, g.cluster.id, g.cluster.key, g.claims(subject))
}

// signed is a token that a key signs; without a key ID when that is empty.
func signed(t *testing.T, method jwt.SigningMethod, id string, key any, claims jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	if id != "" {
		token.Header["kid"] = id
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
