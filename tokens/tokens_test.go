package tokens

import (
	"context"
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
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// bench is one store with any number of issuers on it, and a clock that stands still.
type bench struct {
	keeper *secrets.Keeper
	mu     sync.Mutex
	at     time.Time
}

func newBench(t testing.TB) *bench {
	t.Helper()
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return &bench{keeper: secrets.NewKeeper(store.NewMemory(), box), at: start}
}

func (b *bench) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at
}

func (b *bench) advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = b.at.Add(d)
}

func (b *bench) issuer(t testing.TB, name string) *Issuer {
	t.Helper()
	i, err := Open(t.Context(), Config{Keeper: b.keeper, Name: name, Now: b.now, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func issue(t testing.TB, i *Issuer, c Claims) (string, Claims) {
	t.Helper()
	token, issued, err := i.Issue(t.Context(), c, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return token, issued
}

func TestWhatIsIssuedIsRead(t *testing.T) {
	i := newBench(t).issuer(t, "")
	for _, c := range []Claims{
		{Audience: AudienceJoin, Subject: "zone-1", Zone: "zone-1"},
		{Audience: AudienceDataplane, Subject: "backend", Mesh: "default", Dataplane: "backend", Labels: map[string]string{"app": "backend"}},
		{Audience: AudienceDataplane, Subject: "w", Mesh: "default", Workload: "w"},
		{Audience: AudienceUser, Subject: "ann", Groups: []string{"owners", "mesh-system:admin"}, Scopes: []string{"read"}},
	} {
		token, issued := issue(t, i, c)
		got, err := i.Verify(token, c.Audience)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []*time.Time{&got.IssuedAt, &got.NotBefore, &got.Expires} {
			*at = at.UTC()
		}
		if issued.ID == "" || !reflect.DeepEqual(got, issued) {
			t.Errorf("got  %+v\nwant %+v", got, issued)
		}
	}
}

// forge makes a token of any header and claims, signed as sign says.
func forge(header, claims map[string]any, sign func(text string) []byte) string {
	part := func(v any) string {
		raw, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	text := part(header) + "." + part(claims)
	return text + "." + base64.RawURLEncoding.EncodeToString(sign(text))
}

// TestAbuse has a row for each way of getting past. Each row changes one thing of a token that passes, and the row named
// "nothing" shows that it does.
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
	if err := i.Import(t.Context(), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: rsaDER}), "partner"); err != nil {
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
		{name: "HS256 with the imported key's bytes", header: set{"alg": "HS256", "kid": "partner"}, sign: hs256(rsaDER), want: ErrAlgorithm},
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
		{name: "a stranger's key in the header", header: set{"jwk": set{"kty": "OKP", "crv": "Ed25519"}}, sign: signed(stranger), want: ErrSignature},
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
		{name: "signature dropped", alter: func(s string) string { return s[:strings.LastIndex(s, ".")+1] }, want: ErrSignature},
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

// TestAStrangersTokens: another server's token is refused, though it has the same form, and its own takes it.
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

func TestATokenEnds(t *testing.T) {
	b := newBench(t)
	i := b.issuer(t, "")
	token, issued := issue(t, i, Claims{Audience: AudienceUser})
	b.advance(time.Hour - time.Second)
	if _, err := i.Verify(token, AudienceUser); err != nil {
		t.Fatal(err)
	}
	b.advance(time.Second)
	if _, err := i.Verify(token, AudienceUser); !errors.Is(err, ErrExpired) {
		t.Fatalf("at %s: got %v", issued.Expires, err)
	}
}

// TestRotation: with two replicas on one store. Old tokens hold until their key is retired, new ones hold at once everywhere.
func TestRotation(t *testing.T) {
	b := newBench(t)
	one, two := b.issuer(t, ""), b.issuer(t, "")
	old, _ := issue(t, one, Claims{Audience: AudienceUser})
	first := two.Keys()[0].ID
	if err := two.Retire(t.Context(), first); !errors.Is(err, ErrKey) {
		t.Fatalf("the only key could be retired: %v", err)
	}
	second, err := two.Rotate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fresh, _ := issue(t, one, Claims{Audience: AudienceUser})
	if !strings.Contains(decodeHeader(t, fresh), second) {
		t.Error("the other replica still signs with the old key")
	}
	for _, token := range []string{old, fresh} {
		for _, i := range []*Issuer{one, two} {
			if _, err := i.Verify(token, AudienceUser); err != nil {
				t.Error(err)
			}
		}
	}
	if err := one.Retire(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if _, err := two.Verify(old, AudienceUser); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("a token of a retired key: %v", err)
	}
	if _, err := two.Verify(fresh, AudienceUser); err != nil {
		t.Error(err)
	}
	if keys := two.Keys(); len(keys) != 1 || !keys[0].Signing || keys[0].Algorithm != "EdDSA" {
		t.Errorf("keys: %+v", keys)
	}
}

func decodeHeader(t *testing.T, token string) string {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(token[:strings.Index(token, ".")])
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestReplicasMakeOneFirstKey: all that start at once sign with the same key.
func TestReplicasMakeOneFirstKey(t *testing.T) {
	b := newBench(t)
	var wg sync.WaitGroup
	all := make([]*Issuer, 8)
	for n := range all {
		wg.Go(func() { all[n] = b.issuer(t, "") })
	}
	wg.Wait()
	for _, i := range all {
		if keys := i.Keys(); len(keys) != 1 {
			t.Fatalf("keys: %+v", keys)
		}
	}
}

func TestUsedOnce(t *testing.T) {
	b := newBench(t)
	issuers := []*Issuer{b.issuer(t, ""), b.issuer(t, "")}
	_, c := issue(t, issuers[0], Claims{Audience: AudienceJoin})
	var wg sync.WaitGroup
	results := make([]error, 8)
	for n := range results {
		wg.Go(func() { results[n] = issuers[n%2].Use(t.Context(), c.ID, c.Expires) })
	}
	wg.Wait()
	taken := 0
	for _, err := range results {
		switch {
		case err == nil:
			taken++
		case !errors.Is(err, ErrUsed):
			t.Error(err)
		}
	}
	if taken != 1 {
		t.Errorf("it was used %d times", taken)
	}
}

// TestIDsAreForgotten only when their tokens have expired on every clock, and are not without bound.
func TestIDsAreForgotten(t *testing.T) {
	b := newBench(t)
	i := b.issuer(t, "")
	for n := range 3 {
		if err := i.Revoke(t.Context(), fmt.Sprint("id-", n), start.Add(time.Duration(n+1)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	b.advance(2*time.Hour + 2*skew)
	if err := i.Revoke(t.Context(), "another", start.Add(24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(i.RevokedIDs()); got != "[another id-2]" {
		t.Errorf("remembered: %s", got)
	}
	full := ids{}
	for n := range maxIDs {
		full[fmt.Sprint(n)] = start
	}
	if err := full.remember("one more", start.Add(time.Hour), start); !errors.Is(err, ErrFull) {
		t.Errorf("got %v", err)
	}
	if err := full.remember("one more", start.Add(3*time.Hour), start.Add(2*time.Hour)); err != nil || len(full) != 1 {
		t.Errorf("%d remembered, %v", len(full), err)
	}
}

func TestRevokedIsTold(t *testing.T) {
	b := newBench(t)
	i, other := b.issuer(t, ""), b.issuer(t, "")
	done := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { done <- i.Run(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	token, c := issue(t, i, Claims{Audience: AudienceUser})
	for step, act := range []func() error{
		func() error { return other.Revoke(t.Context(), "somebody else", c.Expires) },
		func() error { _, err := other.Rotate(t.Context()); return err },
		func() error { return other.Revoke(t.Context(), c.ID, c.Expires) },
	} {
		told := i.Revoked()
		if err := act(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-told:
		case <-time.After(30 * time.Second):
			t.Fatalf("step %d was not told", step)
		}
	}
	if _, err := i.Verify(token, AudienceUser); !errors.Is(err, ErrRevoked) {
		t.Errorf("got %v", err)
	}
}

// TestWrongKeyForSecrets: an issuer whose ring cannot be opened does not start, and one that loses it refuses everything.
func TestWrongKeyForSecrets(t *testing.T) {
	memory := store.NewMemory()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	open := func() *secrets.Keeper {
		box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		return secrets.NewKeeper(memory, box)
	}
	first := open()
	i, err := Open(t.Context(), Config{Keeper: first, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	second := open()
	if _, err := Open(t.Context(), Config{Keeper: second, Log: quiet}); !errors.Is(err, secrets.ErrWrongKey) {
		t.Fatalf("got %v", err)
	}
	token, _ := issue(t, i, Claims{Audience: AudienceUser})
	if _, err := second.Put(t.Context(), "token-signing", []byte("{}"), second.Version("token-signing")); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Verify(token, AudienceUser); !errors.Is(err, secrets.ErrWrongKey) {
		t.Errorf("got %v", err)
	}
}

func TestImportedKeys(t *testing.T) {
	i := newBench(t).issuer(t, "")
	weak, _ := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // it is refused
	good, _, _ := ed25519.GenerateKey(rand.Reader)
	text := func(kind string, key any) []byte {
		der, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	for _, row := range []struct {
		name, kid string
		pem       []byte
		ok        bool
	}{
		{"Ed25519", "good", text("PUBLIC KEY", good), true},
		{"twice", "good", text("PUBLIC KEY", good), false},
		{"our own id", i.Keys()[0].ID, text("PUBLIC KEY", good), false},
		{"weak", "weak", text("PUBLIC KEY", &weak.PublicKey), false},
		{"a certificate", "cert", text("CERTIFICATE", good), false},
		{"empty", "empty", nil, false},
		{"kid with a slash", "a/b", text("PUBLIC KEY", good), false},
		{"kid empty", "", text("PUBLIC KEY", good), false},
	} {
		if err := i.Import(t.Context(), row.pem, row.kid); (err == nil) != row.ok || err != nil && !errors.Is(err, ErrKey) {
			t.Errorf("%s: got %v", row.name, err)
		}
	}
}

func TestWhatIsNotIssued(t *testing.T) {
	i := newBench(t).issuer(t, "")
	for _, row := range []struct {
		name string
		c    Claims
		ttl  time.Duration
	}{
		{"no audience", Claims{}, time.Hour},
		{"no time", Claims{Audience: AudienceUser}, 0},
		{"too long a time", Claims{Audience: AudienceUser}, MaxLifetime + time.Hour},
		{"too large", Claims{Audience: AudienceUser, Subject: strings.Repeat("x", maxTokenBytes)}, time.Hour},
	} {
		if token, _, err := i.Issue(t.Context(), row.c, row.ttl); !errors.Is(err, ErrClaims) || token != "" {
			t.Errorf("%s: got %v", row.name, err)
		}
	}
}

// FuzzVerify: whatever is brought, nothing passes that was not issued, and nothing panics.
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
