package abuse

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// providerClient is the audience that the global requires.
const providerClient = "causeway"

// provider is an OpenID Connect provider: its discovery document, its keys, and any tokens that a row needs.
type provider struct {
	url, caFile string
	key         *rsa.PrivateKey
	// asked counts the requests for its keys.
	asked atomic.Int64
}

func startProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{key: key}
	mux := http.NewServeMux()
	answer := func(v any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v)
		}
	}
	s := httptest.NewTLSServer(mux)
	t.Cleanup(s.Close)
	p.url = s.URL
	mux.Handle("GET /.well-known/openid-configuration", answer(map[string]any{
		"issuer": s.URL, "jwks_uri": s.URL + "/keys", "authorization_endpoint": s.URL + "/auth",
		"token_endpoint":                        s.URL + "/token",
		"id_token_signing_alg_values_supported": []string{"RS256"}, "response_types_supported": []string{"id_token"},
		"subject_types_supported": []string{"public"},
	}))
	number := base64.RawURLEncoding.EncodeToString
	keys := answer(map[string]any{"keys": []map[string]string{{
		"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "p1", "n": number(key.N.Bytes()),
		"e": number(big.NewInt(int64(key.E)).Bytes()),
	}}})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		keys(w, r)
	})
	p.caFile = filepath.Join(t.TempDir(), "provider.pem")
	if err := os.WriteFile(p.caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// token returns an ID token of nora in the group readers, modified by change.
func (p *provider) token(t *testing.T, change func(jwt.MapClaims)) string {
	t.Helper()
	return signed(t, jwt.SigningMethodRS256, "p1", p.claims(change), p.key)
}

func (p *provider) claims(change func(jwt.MapClaims)) jwt.MapClaims {
	claims := jwt.MapClaims{
		"iss": p.url, "aud": providerClient, "sub": "nora", "groups": []string{"readers"},
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	if change != nil {
		change(claims)
	}
	return claims
}

func signed(t *testing.T, method jwt.SigningMethod, kid string, claims jwt.Claims, key any) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	token.Header["kid"] = kid
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// clientAuthority signs certificates of users.
type clientAuthority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newClientAuthority(t *testing.T, name string) *clientAuthority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	return &clientAuthority{cert: certificate(t, template, template, key.Public(), key), key: key}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func certificate(t *testing.T, template, parent *x509.Certificate, public crypto.PublicKey,
	signer crypto.Signer) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// file writes the authority's certificate as PEM and returns the path.
func (a *clientAuthority) file(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// user returns a client certificate of cora in the group auditors, modified by change.
func (a *clientAuthority) user(t *testing.T, change func(*x509.Certificate)) *tls.Certificate {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "cora", Organization: []string{"auditors"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if change != nil {
		change(template)
	}
	return &tls.Certificate{Certificate: [][]byte{certificate(t, template, a.cert, key.Public(), a.key).Raw},
		PrivateKey: key}
}

// strangersKey returns a key that the provider does not have.
func strangersKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
