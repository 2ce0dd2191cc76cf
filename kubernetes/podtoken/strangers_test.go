package podtoken_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/causeway-mesh/causeway/kubernetes/podtoken"
)

// with is claims with one that is another; without it when the value is nil.
func with(claims jwt.MapClaims, name string, value any) jwt.MapClaims {
	if claims[name] = value; value == nil {
		delete(claims, name)
	}
	return claims
}

// strangers are tokens that prove nothing, by what is wrong with them.
func strangers(t *testing.T, g *rig) map[string]string {
	t.Helper()
	public, err := x509.MarshalPKIXPublicKey(g.cluster.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	const unsigned = jwt.UnsafeAllowNoneSignatureType
	other := newSigner(t, "other")
	of := func(claims jwt.MapClaims) string {
		return signed(t, g.cluster.method, g.cluster.id, g.cluster.key, claims)
	}
	parts := strings.Split(g.token("a"), ".")
	forged, err := json.Marshal(g.claims("forged"))
	if err != nil {
		t.Fatal(err)
	}
	carries := jwt.NewWithClaims(other.method, g.claims("a"))
	carries.Header["kid"], carries.Header["jwk"] = "cluster", other.jwk()
	carried, err := carries.SignedString(other.key)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"junk":                                 "a.b.c",
		"no header":                            "e30.e30.c2ln",
		"an unknown key":                       signed(t, other.method, other.id, other.key, g.claims("a")),
		"another key under the cluster's name": signed(t, other.method, "cluster", other.key, g.claims("a")),
		"a key that it carries":                carried,
		"no name of a key":                     signed(t, g.cluster.method, "", g.cluster.key, g.claims("a")),
		"no signature":                         signed(t, jwt.SigningMethodNone, "cluster", unsigned, g.claims("a")) + "c2ln",
		"the public key as a secret":           signed(t, jwt.SigningMethodHS256, "cluster", public, g.claims("a")),
		"another algorithm":                    signed(t, jwt.SigningMethodRS512, "cluster", g.cluster.key, g.claims("a")),
		"other claims":                         parts[0] + "." + base64.RawURLEncoding.EncodeToString(forged) + "." + parts[2],
		"another signature":                    parts[0] + "." + parts[1] + "." + strings.Split(g.token("b"), ".")[2],
		"another audience":                     of(with(g.claims("a"), "aud", []string{"https://kubernetes.default.svc"})),
		"no audience":                          of(with(g.claims("a"), "aud", nil)),
		"another issuer":                       of(with(g.claims("a"), "iss", "https://elsewhere.example")),
		"no issuer":                            of(with(g.claims("a"), "iss", nil)),
		"expired":                              of(with(g.claims("a"), "exp", g.now().Unix())),
		"without an end":                       of(with(g.claims("a"), "exp", nil)),
		"not yet valid":                        of(with(g.claims("a"), "nbf", g.now().Add(time.Hour).Unix())),
		"times that are no numbers":            of(with(g.claims("a"), "exp", "tomorrow")),
	}
}

// TestTokensProveThemselvesFirst: a token that no key of the cluster signed, for us and for now, is refused without a
// question, and not remembered.
func TestTokensProveThemselvesFirst(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for name, token := range strangers(t, g) {
		got, err := g.Check(t.Context(), token)
		if !errors.Is(err, podtoken.ErrRefused) || got != (podtoken.Pod{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if g.asked.Load() != 0 || g.looks.Load() != 2 || g.Kept() != 0 {
		t.Errorf("%d reviews, want 0; %d requests for keys, want 2; %d tokens are remembered", g.asked.Load(), g.looks.Load(), g.Kept())
	}
	for name, claims := range map[string]jwt.MapClaims{
		"as it is":                  g.claims("a"),
		"one audience as a text":    with(g.claims("a"), "aud", podtoken.Audience),
		"from a clock that is fast": with(g.claims("a"), "nbf", g.now().Add(time.Minute).Unix()),
	} {
		if _, err := g.Check(t.Context(), signed(t, g.cluster.method, g.cluster.id, g.cluster.key, claims)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if g.asked.Load() != 3 || g.looks.Load() != 2 {
		t.Errorf("%d reviews and %d requests for keys", g.asked.Load(), g.looks.Load())
	}
}

// TestStrangersTokensAskNobody: 10,000 tokens that strangers made up cause one look at the keys in 10 s, and keep no pod
// out, while they come and afterwards.
func TestStrangersTokensAskNobody(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	encode := base64.RawURLEncoding.EncodeToString
	payload, err := json.Marshal(g.claims("a"))
	if err != nil {
		t.Fatal(err)
	}
	before := g.token("before")
	if _, err := g.Check(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	g.set(http.StatusCreated, `{"error": "invalid bearer token"}`, 0)
	signature, other := make([]byte, 256), 0
	for i := range 10_000 {
		id := "cluster"
		if i%2 == 0 {
			id = fmt.Sprint("key-", i)
		}
		copy(signature, fmt.Sprint(i))
		junk := encode(fmt.Appendf(nil, `{"alg":"RS256","kid":%q}`, id)) + "." + encode(payload) + "." + encode(signature)
		if _, err := g.Check(t.Context(), junk); !errors.Is(err, podtoken.ErrRefused) {
			other++
		}
		if i == 1_000 {
			g.set(http.StatusCreated, `{"error": "invalid bearer token"}`, 11*time.Second)
		}
	}
	g.set(http.StatusCreated, good, 0)
	if other > 0 {
		t.Errorf("%d strangers are not refused", other)
	}
	if asked, looks := g.asked.Load(), g.looks.Load(); asked != 1 || looks != 4 {
		t.Errorf("%d reviews and %d requests for keys, want 1 and 4", asked, looks)
	}
	if g.Kept() != 1 {
		t.Errorf("%d tokens are remembered, want that of the pod", g.Kept())
	}
	for _, token := range []string{before, g.token("after")} {
		if _, err := g.Check(t.Context(), token); err != nil {
			t.Errorf("a pod's token: %v", err)
		}
	}
}
