package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// oddProvider is an identity provider whose answers a test changes.
type oddProvider struct {
	*httptest.Server
	key *rsa.PrivateKey
	// ca is the file of its certificate.
	ca string
	// document, claims and device are what it answers.
	document map[string]any
	claims   jwt.MapClaims
	device   map[string]any
	// answer, if set, answers a request in place of all others, and reports whether it has.
	answer func(w http.ResponseWriter, r *http.Request) bool
	nonce  string     // of its tokens
	mu     sync.Mutex // held while it answers, and while what it says is changed
}

// change changes what it says from now on.
func (p *oddProvider) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func startOddProvider(t *testing.T, key *rsa.PrivateKey) *oddProvider {
	t.Helper()
	p := &oddProvider{key: key}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	p.Config.ErrorLog = log.New(io.Discard, "", 0) // clients hang up
	p.StartTLS()
	t.Cleanup(p.Close)
	p.document = map[string]any{"issuer": p.URL, "jwks_uri": p.URL + "/keys", "authorization_endpoint": p.URL + "/auth",
		"token_endpoint": p.URL + "/token", "device_authorization_endpoint": p.URL + "/device"}
	p.claims = jwt.MapClaims{"iss": p.URL, "aud": "causeway", "sub": "nora", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
	p.device = map[string]any{"device_code": "d", "user_code": "ABCD-EFGH", "verification_uri": p.URL + "/enter", "expires_in": 60, "interval": 1}
	p.ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(p.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *oddProvider) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	answer := p.answer
	p.mu.Unlock()
	if answer != nil && answer(w, r) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	encode := base64.RawURLEncoding.EncodeToString
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(p.document)
	case "/keys":
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []map[string]string{{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1",
			"n": encode(p.key.N.Bytes()), "e": encode(big.NewInt(int64(p.key.E)).Bytes())}}})
	case "/device":
		_ = json.NewEncoder(w).Encode(p.device)
	case "/token":
		if p.nonce != "" && p.claims["nonce"] == nil {
			p.claims["nonce"] = p.nonce
		}
		signed, _ := p.signed()
		_ = json.NewEncoder(w).Encode(map[string]string{"id_token": signed, "refresh_token": "r"})
	}
}

// signed returns an ID token.
func (p *oddProvider) signed() (string, error) {
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, p.claims)
	token.Header["kid"] = "1"
	return token.SignedString(p.key)
}

// oddKey returns the key of all providers: making one takes longer than most that is done with it.
func oddKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := oneKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

var oneKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// server is a control plane that names a provider and accepts any token.
func (p *oddProvider) server(t *testing.T, issuer string) string {
	t.Helper()
	s := httptest.NewServer(posing(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/who-am-i" {
			_ = json.NewEncoder(w).Encode(map[string]any{"name": "oidc:nora"})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": issuer, "clientId": "causeway"})
	})))

	t.Cleanup(s.Close)
	return s.URL
}

// login prepares a causewayctl login whose home is dir.
func (p *oddProvider) login(ctx context.Context, dir, server string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(programs(), "causewayctl"), append([]string{"login", "prod", "--address", server, //nolint:gosec // the program under test
		"--provider-ca", p.ca, "--timeout", "2s"}, args...)...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+dir, "DISPLAY=", "WAYLAND_DISPLAY=")
	return cmd
}
