package global_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"google.golang.org/grpc/codes"
)

// tokenAttempts are attempts by bearer token.
func tokenAttempts() []attempt {
	right := func(g *gated) error { return g.enter(g.dial(nil), "zone-1", "Bearer "+g.zoneToken("zone-1", "cp")) }
	row := func(name string, code codes.Code, token func(*gated) string, audited ...string) attempt {
		return attempt{name, func(g *gated) error { return g.enter(g.dial(nil), "zone-1", token(g)) }, right, code,
			append(audited, verbConnect, ofZone1, byToken)}
	}
	good := func(g *gated) string { return g.zoneToken("zone-1", "cp") }
	return []attempt{
		row("empty", codes.Unauthenticated, func(*gated) string { return "" }),
		row("no token", codes.Unauthenticated, func(*gated) string { return "Bearer" }),
		row("another scheme", codes.Unauthenticated, func(g *gated) string { return "Basic " + good(g) }),
		row("no JWT", codes.Unauthenticated, func(*gated) string { return "Bearer zone-1" }, `"reason":"malformed"`),
		row("very long", codes.Unauthenticated,
			func(g *gated) string { return "Bearer " + good(g) + strings.Repeat("A", 10_000) }, `"reason":"malformed"`),
		row("another zone's", codes.PermissionDenied,
			func(g *gated) string { return "Bearer " + g.zoneToken("zone-2", "cp") }),
		row("of another scope", codes.PermissionDenied,
			func(g *gated) string { return "Bearer " + g.zoneToken("zone-1", "ingress", "egress") }),
		row("of another audience: a join token", codes.Unauthenticated,
			func(g *gated) string { return "Bearer " + g.joinToken("zone-1") }, `"reason":"audience"`),
		row("expired", codes.Unauthenticated, func(g *gated) string {
			token := good(g)
			g.clock.advance(31 * 24 * time.Hour)
			return "Bearer " + token
		}),
		row("revoked", codes.Unauthenticated, func(g *gated) string {
			token := good(g)
			g.post("/zones/zone-1/_revoke", "{}", nil)
			return "Bearer " + token
		}),
		row("revoked by a clock that is behind the one that it was issued by", codes.Unauthenticated, func(g *gated) string {
			token := good(g)
			g.clock.advance(-20 * time.Second)
			g.post("/zones/zone-1/_revoke", "{}", nil)
			return "Bearer " + token
		}),
		row("of a zone that was deleted", codes.Unauthenticated, func(g *gated) string {
			token := good(g)
			g.post("/zones/zone-1/_delete", "{}", nil)
			return "Bearer " + token
		}),
		row("of a key that was retired", codes.Unauthenticated, func(g *gated) string {
			token := good(g)
			var keys struct{ Keys []struct{ ID string } }
			g.post("/_keys/token-signing/_rotate", "{}", &keys)
			g.post("/_keys/token-signing/"+keys.Keys[1].ID+"/_retire", "{}", nil)
			return "Bearer " + token
		}, `"reason":"unknown-key"`),
		row("altered claims", codes.Unauthenticated, func(g *gated) string {
			return "Bearer " + altered(good(g), 1,
				func(b []byte) []byte { return []byte(strings.Replace(string(b), "zone-1", "zone-3", 1)) })
		}, `"reason":"signature"`),
		row("altered signature", codes.Unauthenticated, func(g *gated) string {
			return "Bearer " + altered(good(g), 2, func(b []byte) []byte { b[0] ^= 1; return b })
		}, `"reason":"signature"`),
		row("without a signature", codes.Unauthenticated, func(g *gated) string {
			return "Bearer " + resigned(g, good(g), jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType)
		}, `"reason":"algorithm"`),
		row("signed with a shared secret", codes.Unauthenticated, func(g *gated) string {
			return "Bearer " + resigned(g, good(g), jwt.SigningMethodHS256, []byte("secret"))
		}, `"reason":"algorithm"`),
		row("signed by a foreign key under a known id", codes.Unauthenticated, func(g *gated) string {
			_, key, err := ed25519.GenerateKey(rand.Reader)
			g.must(err)
			return "Bearer " + resigned(g, good(g), jwt.SigningMethodEdDSA, key)
		}, `"reason":"signature"`),
		row("signed by RSA under the id of an EdDSA key", codes.Unauthenticated, func(g *gated) string {
			key, err := rsa.GenerateKey(rand.Reader, 2048)
			g.must(err)
			return "Bearer " + resigned(g, good(g), jwt.SigningMethodRS256, key)
		}, `"reason":"algorithm"`),
		{"two tokens", func(g *gated) error { return g.enter(g.dial(nil), "zone-1", "Bearer "+good(g), "Bearer "+good(g)) }, right, codes.Unauthenticated, []string{verbConnect, byToken}},
		{"beside another zone's certificate", func(g *gated) error {
			return g.enter(g.dial(g.join("zone-2").pair), "zone-1", "Bearer "+good(g))
		}, right, codes.PermissionDenied, []string{verbConnect, byCert}},
	}
}

// altered changes one part of a token.
func altered(token string, part int, change func([]byte) []byte) string {
	parts := strings.Split(token, ".")
	raw, err := jwt.NewParser().DecodeSegment(parts[part])
	if err != nil {
		return err.Error()
	}
	parts[part] = (&jwt.Token{}).EncodeSegment(change(raw))
	return strings.Join(parts, ".")
}

// resigned returns a token with the same claims and key ID and another signature.
func resigned(g *gated, token string, method jwt.SigningMethod, key any) string {
	claims := jwt.MapClaims{}
	old, _, err := jwt.NewParser().ParseUnverified(token, claims)
	g.must(err)
	made := jwt.NewWithClaims(method, claims)
	made.Header["kid"] = old.Header["kid"]
	out, err := made.SignedString(key)
	g.must(err)
	return out
}

func withoutTokensAttempts() []attempt {
	return []attempt{{
		"a token where none are taken",
		func(g *gated) error { return g.enter(g.dial(nil), "zone-1", "Bearer "+g.joinToken("zone-1")) },
		byCertificate("zone-1"), codes.Unauthenticated, []string{verbConnect, byToken},
	}}
}

// anonymousWithoutTokensAttempts are attempts to have a token ignored where tokens are neither accepted nor needed.
func anonymousWithoutTokensAttempts() []attempt {
	free := func(g *gated) error { return g.enter(g.dial(nil), "zone-8") }
	row := func(name string, token func(*gated) string) attempt {
		return attempt{name, func(g *gated) error { return g.enter(g.dial(nil), "zone-8", token(g)) }, free,
			codes.Unauthenticated, []string{verbConnect, byToken}}
	}
	return []attempt{
		row("a bad token", func(*gated) string { return "Bearer x" }),
		row("a join token", func(g *gated) string { return "Bearer " + g.joinToken("zone-1") }),
		row("an empty token", func(*gated) string { return "" }),
	}
}

// anonymousAttempts are attempts to bypass a credential where none is required.
func anonymousAttempts() []attempt {
	refused := []string{verbConnect, ofZone1, byNothing}
	free := func(g *gated) error { return g.enter(g.dial(nil), "zone-8") }
	return []attempt{
		{"as a zone that has joined", func(g *gated) error { g.join("zone-1"); return g.enter(g.dial(nil), "zone-1") },
			byCertificate("zone-1"), codes.Unauthenticated, refused},
		{"as a zone that may join", func(g *gated) error { g.joinToken("zone-1"); return g.enter(g.dial(nil), "zone-1") }, free, codes.Unauthenticated, refused},
		{"as a zone that was revoked", func(g *gated) error {
			g.join("zone-1")
			g.post("/zones/zone-1/_revoke", "{}", nil)
			return g.enter(g.dial(nil), "zone-1")
		}, free, codes.Unauthenticated, refused},
		{"as a zone that was deleted", func(g *gated) error {
			g.join("zone-1")
			g.post("/zones/zone-1/_delete", "{}", nil)
			return g.enter(g.dial(nil), "zone-1")
		}, free, codes.Unauthenticated, refused},
		{"with a bad certificate, as nobody", func(g *gated) error { return g.enter(g.dial(g.forged("zone-8", nil)), "zone-8") }, free, codes.Unauthenticated, []string{verbConnect, byCert}},
		{"with a bad token, as nobody", func(g *gated) error { return g.enter(g.dial(nil), "zone-8", "Bearer x") },
			free, codes.Unauthenticated, []string{verbConnect, byToken}},
	}
}
