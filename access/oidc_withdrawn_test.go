package access

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// TestWithdrawnKeys: a key that the provider no longer has signs for nobody a few minutes later. While the provider
// does not answer, its last keys hold for an hour, and no longer.
func TestWithdrawnKeys(t *testing.T) {
	t.Parallel()
	var keys [2]*rsa.PrivateKey
	for i := range keys {
		var err error
		if keys[i], err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			t.Fatal(err)
		}
	}
	served, asked := 0, 0 // the key that the provider has; -1: it does not answer
	var s *httptest.Server
	s = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/keys":
			_, _ = fmt.Fprintf(w, `{"issuer": %q, "jwks_uri": %q}`, s.URL, s.URL+"/keys")
		case served < 0:
			asked++
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			asked++
			_, _ = io.WriteString(w, keysOf(keys[served], 1))
		}
	}))
	t.Cleanup(s.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
		0o600); err != nil {
		t.Fatal(err)
	}
	v, err := newOIDC(t.Context(), OIDCSettings{Issuer: s.URL, ClientID: "causeway", CAFile: ca}, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	v.now = func() time.Time { return now }
	verify := func(key int) error {
		token := jwt.NewWithClaims(jwt.SigningMethodRS256,
			jwt.MapClaims{"iss": s.URL, "aud": "causeway", "sub": "nora", "exp": time.Now().Add(24 * time.Hour).Unix()})
		token.Header["kid"] = "k0"
		text, err := token.SignedString(keys[key])
		if err != nil {
			t.Fatal(err)
		}
		_, err = v.Verify(httptest.NewRequest(http.MethodGet, "/", nil), text)
		return err
	}
	for i, step := range []struct {
		what   string
		after  time.Duration
		served int
		key    int
		good   bool
		asks   int
	}{
		{"the first token", 0, 0, 0, true, 1},
		{"another", time.Minute, 0, 0, true, 0},
		{"keys are asked for again", keysFresh, 0, 0, true, 1},
		{"the provider is away", keysFresh, -1, 0, true, 1},
		{"it is not asked by each token", time.Second, -1, 0, true, 0},
		{"it is asked once more", keysEvery, -1, 0, true, 1},
		{"it is away for too long", keysMost, -1, 0, false, 1},
		{"it is back", keysEvery, 0, 0, true, 1},
		{"its key was withdrawn, and another is there", keysFresh, 1, 0, false, 2},
		{"the other", time.Second, 1, 1, true, 0},
		{"the withdrawn one once more", keysFresh, 1, 0, false, 2},
	} {
		now, served, asked = now.Add(step.after), step.served, 0
		err := verify(step.key)
		if (err == nil) != step.good || asked > step.asks || asked == 0 && step.asks > 0 {
			t.Errorf("step %d, %s: %v, asked %d times", i, step.what, err, asked)
		}
	}
}
