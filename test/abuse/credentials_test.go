package abuse

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/causeway-mesh/causeway/resources/api"
)

// credential is the credential of an attempt.
type credential struct {
	token       string
	certificate *tls.Certificate
}

// roles are the roles of the table's users. Both servers get them.
const roles = `
type: AccessRole
name: payments-owner
spec:
  rules:
    - {verbs: [read, create, update, delete], types: [MeshTimeout, MeshTrafficPermission, MeshProxyPatch, Dataplane, MeshService], meshes: [default], namespaces: [payments]}
    - {verbs: [assign], types: [ServiceAccount], meshes: [default], namespaces: [payments], names: [payments, ledger]}
---
type: AccessRole
name: granter
spec:
  rules:
    - {verbs: [read, create, update, delete], types: [AccessRole, AccessRoleBinding]}
    - {verbs: [issue], types: [UserToken, UserGroup], names: [guest, guests]}
---
type: AccessRole
name: zone-operator
spec:
  rules:
    - {verbs: [read, resync, accept-deletes], types: [Zone], names: [zone-1]}
---
{type: AccessRoleBinding, name: owners, spec: {subjects: [{type: User, name: olga}, {type: Group, name: payments-team}], roles: [payments-owner]}}
---
{type: AccessRoleBinding, name: granters, spec: {subjects: [{type: User, name: greta}], roles: [granter]}}
---
{type: AccessRoleBinding, name: operators, spec: {subjects: [{type: User, name: oscar}], roles: [zone-operator]}}
---
{type: AccessRoleBinding, name: readers, spec: {subjects: [{type: User, name: vera}, {type: Group, name: "oidc:readers"}, {type: Group, name: auditors}], roles: [viewer]}}
---
{type: AccessRole, name: of-a-namespace, spec: {rules: [{verbs: ["*"], types: ["*"], namespaces: [payments]}]}}
---
{type: AccessRole, name: of-no-namespace, spec: {rules: [{verbs: ["*"], types: ["*"], namespaces: [""]}]}}
---
{type: AccessRole, name: of-a-mesh, spec: {rules: [{verbs: ["*"], types: ["*"], meshes: [default]}]}}
---
{type: AccessRole, name: of-a-name, spec: {rules: [{verbs: ["*"], types: ["*"], names: [payments]}]}}
---
{type: AccessRoleBinding, name: paula, spec: {subjects: [{type: User, name: paula}], roles: [of-a-namespace]}}
---
{type: AccessRoleBinding, name: nelly, spec: {subjects: [{type: User, name: nelly}], roles: [of-no-namespace]}}
---
{type: AccessRoleBinding, name: mia, spec: {subjects: [{type: User, name: mia}], roles: [of-a-mesh]}}
---
{type: AccessRoleBinding, name: nina, spec: {subjects: [{type: User, name: nina}], roles: [of-a-name]}}
---
{type: AccessRoleBinding, name: admins, spec: {subjects: [{type: User, name: root}], roles: [admin]}}
`

// makeCredentials fills w.credentials. Those of the zone have the prefix zone/.
func (w *world) makeCredentials() {
	w.credentials = map[string]credential{"none": {}}
	for _, s := range []*aServer{w.global, w.zone} {
		if _, err := s.admin.ApplyDocuments(w.t.Context(), []byte(roles), "application/yaml"); err != nil {
			w.t.Fatal(err)
		}
		w.userTokens(s)
		w.badTokens(s)
	}
	w.credentials["foreign"], w.credentials["zone/foreign"] = w.credentials["zone/admin"], w.credentials["admin"]
	w.proxyTokens()
	w.certificates()
	w.idTokens()
}

// of returns the credential of a row. On the zone, it prefers the zone's.
func (w *world) of(s *aServer, name string) credential {
	w.t.Helper()
	if name == "" {
		name = "none"
	}
	if s == w.zone {
		if c, ok := w.credentials["zone/"+name]; ok {
			return c
		}
	}
	c, ok := w.credentials[name]
	if !ok {
		w.t.Fatalf("there is no credential %q", name)
	}
	return c
}

func (w *world) keep(s *aServer, name, token string) {
	if s == w.zone {
		name = "zone/" + name
	}
	w.credentials[name] = credential{token: token}
}

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

func (w *world) certificates() {
	t := w.t
	add := func(name string, from *clientAuthority, change func(*x509.Certificate)) {
		w.credentials[name] = credential{certificate: from.user(t, change)}
	}
	add("cert", w.users, nil)
	add("cert-foreign", newClientAuthority(t, "users"), nil)
	add("cert-expired", w.users, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	add("cert-not-yet", w.users, func(c *x509.Certificate) {
		c.NotBefore, c.NotAfter = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	})
	add("cert-server", w.users, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} })
	add("cert-nameless", w.users, func(c *x509.Certificate) { c.Subject.CommonName = "" })
	add("cert-reserved-user", w.users, func(c *x509.Certificate) { c.Subject.CommonName = "mesh-system:admin" })
	add("cert-reserved-group", w.users, func(c *x509.Certificate) { c.Subject.Organization = []string{"mesh-system:admin"} })
	for name, serial := range map[string]int64{"cert-revoked": 0xabcd, "cert-kept": 0xabc} { // both belong to cora
		add(name, w.users, func(c *x509.Certificate) { c.SerialNumber = big.NewInt(serial) })
	}
	w.revokeCertificate("cert-revoked", "abcd")
	key := newKey(t)
	self := &x509.Certificate{SerialNumber: big.NewInt(9),
		Subject:   pkix.Name{CommonName: "cora", Organization: []string{"auditors"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	w.credentials["cert-self-signed"] = credential{certificate: &tls.Certificate{Certificate: [][]byte{certificate(t,
		self, self, key.Public(), key).Raw}, PrivateKey: key}}
}

// revokeCertificate revokes a valid certificate. A connection that was opened with it becomes useless.
func (w *world) revokeCertificate(name, serial string) {
	w.t.Helper()
	config := w.global.tls()
	config.Certificates = []tls.Certificate{*w.credentials[name].certificate}
	holder, err := api.NewClient(api.ClientConfig{Address: w.global.url, TLS: config})
	if err != nil {
		w.t.Fatal(err)
	}
	defer holder.CloseIdleConnections()
	var who api.WhoAmI
	if err := holder.JSON(w.t.Context(), api.Request{Path: "/who-am-i"}, &who); err != nil ||
		!strings.HasPrefix(who.Credential, serial+" ") {
		w.t.Fatalf("before it is revoked: %+v, %v", who, err)
	}
	if err := w.global.admin.JSON(w.t.Context(),
		api.Request{Method: http.MethodPost, Path: "/certificates/user/" + serial + "/_revoke"}, nil); err != nil {
		w.t.Fatal(err)
	}
	if err := holder.JSON(w.t.Context(), api.Request{Path: "/who-am-i"}, &who); err == nil {
		w.t.Error("a revoked certificate goes on to be accepted on its connection")
	}
	var log api.AuditPage
	err = w.global.admin.JSON(w.t.Context(),
		api.Request{Path: "/_audit", Query: url.Values{"event": {"revoke"}, "type": {"UserCertificate"}}}, &log)
	if err != nil || len(log.Entries) != 1 || log.Entries[0].Name != serial || log.Entries[0].Outcome != "done" {
		w.t.Errorf("the audit log says %+v, %v", log.Entries, err)
	}
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

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still waiting for %s", what)
		}
	}
}
