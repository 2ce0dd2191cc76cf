package abuse

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/causeway-mesh/causeway/api"
)

func (w *world) userTokens(s *aServer) {
	for name, groups := range map[string][]string{
		"admin": {"mesh-system:admin"}, "root": nil, "vera": nil, "olga": nil, "greta": nil, "oscar": nil,
		"nobody": nil, "paula": nil, "nelly": nil, "mia": nil, "nina": nil, "cora": {"auditors"}, "team": {"payments-team"},
	} {
		w.keep(s, name, issue(w.t, s, name, groups, time.Hour))
	}
}

// issue makes the server issue a user token.
func issue(t *testing.T, s *aServer, name string, groups []string, lifetime time.Duration) string {
	t.Helper()
	body, err := json.Marshal(api.UserTokenRequest{Name: name, Groups: groups, ValidFor: lifetime.String()})
	if err != nil {
		t.Fatal(err)
	}
	token, err := s.admin.Do(t.Context(), api.Request{Method: http.MethodPost, Path: "/tokens/user", Body: body})
	if err != nil {
		t.Fatal(err)
	}
	return string(token)
}

// badTokens derives bad tokens from a token of an admin.
func (w *world) badTokens(s *aServer) {
	t := w.t
	good := issue(t, s, "root", []string{"mesh-system:admin"}, time.Hour)
	parts := strings.Split(good, ".")
	var header struct{ Kid string }
	decode(t, parts[0], &header)
	claims := jwt.MapClaims{}
	decode(t, parts[1], &claims)

	revoked := issue(t, s, "root", []string{"mesh-system:admin"}, time.Hour)
	var of struct {
		ID string `json:"jti"`
	}
	decode(t, strings.Split(revoked, ".")[1], &of)
	if err := s.admin.JSON(t.Context(),
		api.Request{Method: http.MethodPost, Path: "/tokens/user/" + of.ID + "/_revoke"}, nil); err != nil {
		t.Fatal(err)
	}
	w.keep(s, "revoked", revoked)

	altered := jwt.MapClaims{}
	decode(t, parts[1], &altered)
	altered["sub"] = "somebody-else"
	w.keep(s, "altered", parts[0]+"."+encode(t, altered)+"."+parts[2])
	w.keep(s, "cut", good[:len(good)-8])
	w.keep(s, "unsigned", parts[0]+"."+parts[1]+".")
	none := encode(t, map[string]string{"alg": "none", "typ": "JWT", "kid": header.Kid})
	w.keep(s, "alg-none", none+"."+parts[1]+".")
	w.keep(s, "alg-none-signed", none+"."+parts[1]+"."+parts[2])
	secret := s.ca
	if secret == nil {
		secret = []byte(header.Kid)
	}
	w.keep(s, "alg-hs256", signed(t, jwt.SigningMethodHS256, header.Kid, claims, secret))
	w.keep(s, "stranger", signed(t, jwt.SigningMethodEdDSA, "unknown", claims, strangersKey(t)))
	w.keep(s, "key-confusion", signed(t, jwt.SigningMethodEdDSA, header.Kid, claims, strangersKey(t)))
	w.keep(s, "rs256-confusion", signed(t, jwt.SigningMethodRS256, header.Kid, claims, w.provider.key))
	w.keep(s, "kid-path", signed(t, jwt.SigningMethodEdDSA, "../../secrets.key", claims, strangersKey(t)))
	w.keep(s, "garbage", "not.a.token")
	w.keep(s, "long", strings.Repeat("a", 20000))

	expired := issue(t, s, "root", []string{"mesh-system:admin"}, time.Second)
	w.keep(s, "expired", expired)
	eventually(t, "the token to expire", func() bool {
		_, err := s.client(t, expired).Do(t.Context(), api.Request{Path: "/who-am-i"})
		return err != nil
	})
}

func decode(t *testing.T, part string, into any) {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(part)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func (w *world) idTokens() {
	t, p := w.t, w.provider
	add := func(name string, change func(jwt.MapClaims)) {
		w.credentials[name] = credential{token: p.token(t, change)}
	}
	add("oidc", nil)
	add("oidc-expired", func(c jwt.MapClaims) { c["exp"] = time.Now().Add(-time.Minute).Unix() })
	add("oidc-other-audience", func(c jwt.MapClaims) { c["aud"] = "another" })
	add("oidc-other-issuer", func(c jwt.MapClaims) { c["iss"] = "https://elsewhere.example" })
	add("oidc-nameless", func(c jwt.MapClaims) { delete(c, "sub") })
	add("oidc-ungrouped", func(c jwt.MapClaims) { delete(c, "groups") })
	add("oidc-reserved", func(c jwt.MapClaims) { c["groups"] = []string{"mesh-system:admin"} })
	add("oidc-claims-user", func(c jwt.MapClaims) { c["sub"], c["groups"] = "vera", nil })
	add("oidc-not-yet", func(c jwt.MapClaims) { c["nbf"] = time.Now().Add(time.Hour).Unix() })
	add("oidc-other-audiences", func(c jwt.MapClaims) { c["aud"] = []string{"another", "causewayx", ""} })
	add("oidc-several-audiences", func(c jwt.MapClaims) { c["aud"] = []string{"another", providerClient} })
	add("oidc-logout", func(c jwt.MapClaims) {
		c["events"] = map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}
	})
	claims := p.claims(nil)
	for name, kind := range map[string]string{"oidc-access": "at+jwt", "oidc-media-type": "application/logout+jwt"} {
		token := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
		token.Header["kid"], token.Header["typ"] = "p1", kind
		text, err := token.SignedString(p.key)
		if err != nil {
			t.Fatal(err)
		}
		w.credentials[name] = credential{token: text}
	}
	w.credentials["oidc-kid-path"] = credential{token: signed(t, jwt.SigningMethodEdDSA, "../../../../dev/null", claims,
		strangersKey(t))}
	w.credentials["oidc-own-key"] = credential{token: signedWith(t, claims,
		map[string]any{"kid": "p1", "jku": "https://elsewhere.example/keys", "jwk": map[string]string{
			"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}})}
	w.credentials["oidc-hs256"] = credential{token: signed(t, jwt.SigningMethodHS256, "p1", claims, p.key.N.Bytes())}
	w.credentials["oidc-stranger"] = credential{token: signed(t, jwt.SigningMethodEdDSA, "p1", claims, strangersKey(t))}
	w.credentials["oidc-none"] = credential{token: encode(t, map[string]string{"alg": "none", "kid": "p1"}) + "." +
		encode(t, claims) + "."}
	w.credentials["oidc-no-kid"] = credential{token: signed(t, jwt.SigningMethodEdDSA, "", claims, strangersKey(t))}
}

// signedWith returns a token of a stranger who says in its header where the key is.
func signedWith(t *testing.T, claims jwt.Claims, header map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
	maps.Copy(token.Header, header)
	text, err := token.SignedString(strangersKey(t))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
