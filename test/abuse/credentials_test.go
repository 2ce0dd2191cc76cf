package abuse

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/api"
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

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still waiting for %s", what)
		}
	}
}
