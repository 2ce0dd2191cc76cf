package access

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// spaces are n bytes of JSON's white space, for a document that is never over.
func spaces(n int64) io.Reader { return io.LimitReader(blank{}, n) }

type blank struct{}

func (blank) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// TestWhatAProviderAnswers: of an identity provider's documents no more is read than they may have, and none of them
// over plain text.
func TestWhatAProviderAnswers(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	const much = 32 << 20
	// These are made before a provider is asked: what takes long to make would be judged as slow, not as long.
	many, packed := keysOf(key, 100_000), pack(t, spaces(much))
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, keysOf(key, 1)) }))
	t.Cleanup(plain.Close)
	for _, tt := range []struct {
		name      string
		document  func(w http.ResponseWriter, text string) // nil: as it is
		keys      func(w http.ResponseWriter)
		elsewhere string // jwks_uri
		wants     string
	}{
		{name: "as it is"},
		{name: "a long document", document: func(w http.ResponseWriter, text string) {
			_, _ = io.Copy(w, io.MultiReader(spaces(much), strings.NewReader(text)))
		}, wants: "longer than"},
		{name: "a packed document", document: func(w http.ResponseWriter, _ string) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(packed)
		}, wants: "invalid character"},
		{name: "long keys", keys: func(w http.ResponseWriter) {
			_, _ = io.Copy(w, io.MultiReader(spaces(much), strings.NewReader(keysOf(key, 1))))
		}, wants: "longer than"},
		{name: "many keys", keys: func(w http.ResponseWriter) { _, _ = io.WriteString(w, many) }, wants: "longer than"},
		{name: "a hundred keys", keys: func(w http.ResponseWriter) { _, _ = io.WriteString(w, keysOf(key, 100)) }},
		{name: "keys in plain text", elsewhere: plain.URL, wants: "want https"},
		{name: "deep keys", keys: func(w http.ResponseWriter) { _, _ = io.WriteString(w, strings.Repeat("[", 900_000)) }, wants: "ID token"},
	} {
		// One after another: each has ten seconds, of which the others would take some on a busy machine.
		t.Run(tt.name, func(t *testing.T) {
			var sent atomic.Int64
			mux := http.NewServeMux()
			s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { mux.ServeHTTP(counting{w, &sent}, r) }))
			t.Cleanup(s.Close)
			mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
				at := s.URL + "/keys"
				if tt.elsewhere != "" {
					at = tt.elsewhere
				}
				text := fmt.Sprintf(`{"issuer": %q, "jwks_uri": %q, "id_token_signing_alg_values_supported": ["RS256"]}`, s.URL, at)
				if tt.document != nil {
					tt.document(w, text)
					return
				}
				_, _ = io.WriteString(w, text)
			})
			mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
				if tt.keys != nil {
					tt.keys(w)
					return
				}
				_, _ = io.WriteString(w, keysOf(key, 1))
			})
			ca := filepath.Join(t.TempDir(), "ca.pem")
			if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
				0o600); err != nil {
				t.Fatal(err)
			}
			v, err := newOIDC(t.Context(), OIDCSettings{Issuer: s.URL, ClientID: "causeway", CAFile: ca}, nil)
			if err != nil {
				t.Fatal(err)
			}
			token := jwt.NewWithClaims(jwt.SigningMethodRS256,
				jwt.MapClaims{"iss": s.URL, "aud": "causeway", "sub": "nora", "exp": time.Now().Add(time.Hour).Unix()})
			token.Header["kid"] = "k0"
			text, err := token.SignedString(key)
			if err != nil {
				t.Fatal(err)
			}
			_, err = v.Verify(httptest.NewRequest(http.MethodGet, "/", nil), text)
			why := ""
			if refused := (*LoginError)(nil); errors.As(err, &refused) {
				why = fmt.Sprintf("%v %+v", err, refused.Reason)
			}
			if (err == nil) != (tt.wants == "") || !strings.Contains(why, tt.wants) {
				t.Errorf("%v, want %q", err, tt.wants)
			}
			if sent.Load() > 16<<20 {
				t.Errorf("the provider got rid of %d bytes", sent.Load())
			}
		})
	}
}

// pack returns the text in gzip's form.
func pack(t *testing.T, text io.Reader) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := io.Copy(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// keysOf are the keys of a provider, of which the first is key.
func keysOf(key *rsa.PrivateKey, n int) string {
	number := base64.RawURLEncoding.EncodeToString
	modulus, exponent := number(key.N.Bytes()), number(big.NewInt(int64(key.E)).Bytes())
	var list strings.Builder
	for i := range n {
		if i > 0 {
			list.WriteByte(',')
		}
		fmt.Fprintf(&list, `{"kty":"RSA","alg":"RS256","use":"sig","kid":"k%d","n":%q,"e":%q}`, i, modulus, exponent)
	}
	return `{"keys":[` + list.String() + `]}`
}

// counting counts what is written.
type counting struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c counting) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.n.Add(int64(n))
	return n, err
}
