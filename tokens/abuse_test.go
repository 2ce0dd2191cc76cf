package tokens

import (
	"crypto"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

// forge creates a token with any header and claims, signed by sign.
func forge(header, claims map[string]any, sign func(text string) []byte) string {
	part := func(v any) string {
		raw, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	text := part(header) + "." + part(claims)
	return text + "." + base64.RawURLEncoding.EncodeToString(sign(text))
}

// TestAbuse has a row for each attack. Each row changes one part of a valid token; the row "nothing" shows that it is
// valid.
func TestAbuse(t *testing.T) {
	b := newBench(t)
	i := b.issuer(t, "")
	ring, _ := i.ring.get(t.Context())
	own := ring.signer()
	private := own.signing()
	public := private.Public().(ed25519.PublicKey)
	publicDER, _ := x509.MarshalPKIXPublicKey(public)
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: publicDER})
	_, stranger, _ := ed25519.GenerateKey(rand.Reader)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	rsaDER, _ := x509.MarshalPKIXPublicKey(&rsaKey.PublicKey)
	if err := i.Import(t.Context(), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: rsaDER}),
		"partner"); err != nil {
		t.Fatal(err)
	}

	signed := func(key ed25519.PrivateKey) func(string) []byte {
		return func(text string) []byte { return ed25519.Sign(key, []byte(text)) }
	}
	hs256 := func(key []byte) func(string) []byte {
		return func(text string) []byte {
			m := hmac.New(sha256.New, key)
			m.Write([]byte(text))
			return m.Sum(nil)
		}
	}
	rs256 := func(text string) []byte {
		sum := sha256.Sum256([]byte(text))
		out, _ := rsa.SignPKCS1v15(rand.Reader, rsaKey, crypto.SHA256, sum[:])
		return out
	}
	ps256 := func(text string) []byte {
		sum := sha256.Sum256([]byte(text))
		out, _ := rsa.SignPSS(rand.Reader, rsaKey, crypto.SHA256, sum[:], nil)
		return out
	}
	nothing := func(string) []byte { return nil }

	type set map[string]any
	for _, row := range []struct {
		name           string
		header, claims set
		sign           func(string) []byte
		alter          func(string) string
		want           error
	}{
		{name: "nothing"},
		{name: "none", header: set{"alg": "none"}, sign: nothing, want: ErrAlgorithm},
		{name: "none in another spelling", header: set{"alg": "nOnE"}, sign: nothing, want: ErrAlgorithm},
		{name: "none with a signature", header: set{"alg": "none"}, want: ErrAlgorithm},
		{name: "no algorithm", header: set{"alg": nil}, want: ErrAlgorithm},
		{name: "algorithm is a number", header: set{"alg": 1}, want: ErrAlgorithm},
		{name: "HS256 with the public key", header: set{"alg": "HS256"}, sign: hs256(public), want: ErrAlgorithm},
		{name: "HS256 with the public key in PEM", header: set{"alg": "HS256"}, sign: hs256(publicPEM), want: ErrAlgorithm},
		{name: "HS256 with the imported key's bytes", header: set{"alg": "HS256", "kid": "partner"},
			sign: hs256(rsaDER), want: ErrAlgorithm},
		{name: "HS256 with an empty key", header: set{"alg": "HS256"}, sign: hs256(nil), want: ErrAlgorithm},
		{name: "RS256 names an Ed25519 key", header: set{"alg": "RS256"}, sign: rs256, want: ErrAlgorithm},
		{name: "EdDSA names an RSA key", header: set{"kid": "partner"}, want: ErrAlgorithm},
		{name: "PS256 names an RSA key", header: set{"alg": "PS256", "kid": "partner"}, sign: ps256, want: ErrAlgorithm},
		{name: "RS512 names an RSA key", header: set{"alg": "RS512", "kid": "partner"}, sign: rs256, want: ErrAlgorithm},
		{name: "RS256 by the imported key", header: set{"alg": "RS256", "kid": "partner"}, sign: rs256},
		{name: "no kid", header: set{"kid": nil}, want: ErrUnknownKey},
		{name: "foreign kid", header: set{"kid": "theirs"}, sign: signed(stranger), want: ErrUnknownKey},
		{name: "kid is a path", header: set{"kid": "../../dev/null"}, want: ErrUnknownKey},
		{name: "kid is a list", header: set{"kid": []string{own.ID}}, want: ErrUnknownKey},
		{name: "a stranger's key under our kid", sign: signed(stranger), want: ErrSignature},
		{name: "a stranger's key in the header", header: set{"jwk": set{"kty": "OKP", "crv": "Ed25519"}},
			sign: signed(stranger), want: ErrSignature},
		{name: "a critical extension", header: set{"crit": []string{"exp"}}, want: ErrMalformed},
		{name: "expired", claims: set{"exp": start.Unix()}, want: ErrExpired},
		{name: "no expiry", claims: set{"exp": nil}, want: ErrMalformed},
		{name: "expiry in words", claims: set{"exp": "tomorrow"}, want: ErrMalformed},
		{name: "not yet", claims: set{"nbf": start.Add(time.Minute).Unix()}, want: ErrNotYet},
		{name: "another audience", claims: set{"aud": string(AudienceUser)}, want: ErrAudience},
		{name: "two audiences", claims: set{"aud": []string{string(AudienceUser), string(AudienceZone)}}, want: ErrAudience},
		{name: "no audience", claims: set{"aud": nil}, want: ErrAudience},
		{name: "no id", claims: set{"jti": nil}, want: ErrMalformed},
		{name: "revoked", claims: set{"jti": "revoked"}, want: ErrRevoked},
		{name: "claims altered", alter: func(s string) string {
			parts := strings.Split(s, ".")
			claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
			parts[1] = base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(claims), "zone-1", "zone-2", 1)))
			return strings.Join(parts, ".")
		}, want: ErrSignature},
		{name: "signature dropped", alter: func(s string) string { return s[:strings.LastIndex(s, ".")+1] },
			want: ErrSignature},
		{name: "signature cut", alter: func(s string) string { return s[:len(s)-6] }, want: ErrSignature},
		{name: "a fourth part", alter: func(s string) string { return s + ".e30" }, want: ErrMalformed},
		{name: "two parts", alter: func(s string) string { return s[:strings.LastIndex(s, ".")] }, want: ErrMalformed},
		{name: "blank at the end", alter: func(s string) string { return s + " " }, want: ErrMalformed},
		{name: "Bearer in front", alter: func(s string) string { return "Bearer " + s }, want: ErrMalformed},
		{name: "empty", alter: func(string) string { return "" }, want: ErrMalformed},
		{name: "too long", claims: set{"groups": []string{strings.Repeat("x", maxTokenBytes)}}, want: ErrMalformed},
	} {
		t.Run(row.name, func(t *testing.T) {
			header := set{"alg": "EdDSA", "typ": "JWT", "kid": own.ID}
			claims := set{
				"aud": string(AudienceZone), "jti": "some", "sub": "zone-1", "zone": "zone-1",
				"iat": start.Unix(), "exp": start.Add(time.Hour).Unix(),
			}
			overlay := func(under, over set) {
				for k, v := range over {
					if under[k] = v; v == nil {
						delete(under, k)
					}
				}
			}
			overlay(header, row.header)
			overlay(claims, row.claims)
			if row.sign == nil {
				row.sign = signed(private)
			}
			token := forge(header, claims, row.sign)
			if row.alter != nil {
				token = row.alter(token)
			}
			if err := i.Revoke(t.Context(), "revoked", start.Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			got, err := i.Verify(token, AudienceZone)
			if !errors.Is(err, row.want) || (err == nil) != (row.want == nil) {
				t.Fatalf("got %v, want %v", err, row.want)
			}
			if err != nil && !reflect.DeepEqual(got, Claims{}) {
				t.Errorf("a refused token gave claims: %+v", got)
			}
			if row.want != nil && Reason(err) == "other" {
				t.Errorf("no word for %v", err)
			}
		})
	}
}

// TestAStrangersTokens checks that the token of another server is refused although it has the same form; its own server
// accepts it.
func TestAStrangersTokens(t *testing.T) {
	ours, theirs := newBench(t).issuer(t, ""), newBench(t).issuer(t, "")
	token, _ := issue(t, theirs, Claims{Audience: AudienceUser, Subject: "ann"})
	if _, err := ours.Verify(token, AudienceUser); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("got %v", err)
	}
	if _, err := theirs.Verify(token, AudienceUser); err != nil {
		t.Error(err)
	}
}

// FuzzVerify checks that no token passes unless it was issued, and that nothing panics.
func FuzzVerify(f *testing.F) {
	b := newBench(f)
	i := b.issuer(f, "")
	token, _ := issue(f, i, Claims{Audience: AudienceUser, Subject: "ann"})
	f.Add(token)
	f.Add("")
	f.Add("a.b.c")
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Add(token[:len(token)-1] + "A")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := i.Verify(s, AudienceUser)
		if err == nil && s != token {
			t.Fatalf("%q passed as %+v", s, c)
		}
		if err != nil && Reason(err) == "other" {
			t.Fatalf("%q: %v", s, err)
		}
	})
}
