package zone_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// TestTricksWithIdentity: certificates of a trusted authority without a SPIFFE ID, and headers that claim another
// identity or another host, give access to no client that is not allowed.
func TestTricksWithIdentity(t *testing.T) {
	t.Parallel()
	for _, form := range []rbac.Form{rbac.List, rbac.Compiled} {
		t.Run(string(form), func(t *testing.T) { tricksWithIdentity(t, form) })
	}
}

func tricksWithIdentity(t *testing.T, form rbac.Form) {
	w := newWorldOf(t, form)
	service, hits := application(t)
	port := freePort(t)
	company := newTestCA(t)
	quoted, err := json.Marshal(company.pem())
	must(t, err)
	w.home.Zone = "" // from the global: any trust domain
	w.apply(fmt.Sprintf(`{type: MeshTrust, mesh: default, name: company, spec: {trustDomain: company.example, caBundles: [{type: Pem, pem: {value: %s}}]}}`, quoted))
	w.home.Zone = "zone-1"
	w.httpDataplane("backend", port, service)
	w.apply(`{type: MeshTrafficPermission, mesh: default, name: all, spec: {default: {
  deny: [{spiffeId: {type: Exact, value: "spiffe://company.example/ns/x/sa/mallory"}}],
  allow: [{spiffeId: {type: Prefix, value: "spiffe://company.example/ns/x/"}}, {spiffeId: {type: Exact, value: "spiffe://company.example/admin"}, path: {type: Prefix, value: /admin}}]}}}`)
	w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	good := httpClient(company.certificate("spiffe://company.example/ns/x/sa/alice"))
	eventually(t, "alice allowed", func() bool { return status(good, port) == http.StatusOK })
	reached := hits()
	refused := func(what string, certificate *tls.Certificate, path, headers string) {
		t.Helper()
		got, _, err := rawGet(certificate, port, path, headers)
		if err == nil && got != http.StatusForbidden && got != http.StatusBadRequest || hits() > reached {
			t.Errorf("%s got in: %d", what, got)
		}
		reached = hits()
	}
	for _, uris := range malformed {
		refused(fmt.Sprint(uris), company.certificate(uris...), "/hello", "")
	}
	bob := company.certificate("spiffe://company.example/ns/y/sa/bob")
	for _, headers := range []string{
		"X-Forwarded-Client-Cert: URI=spiffe://company.example/ns/x/sa/alice\r\n",
		"X-Forwarded-Client-Cert: By=spiffe://x;Hash=00;URI=spiffe://company.example/ns/x/sa/alice\r\nX-Forwarded-Client-Cert: URI=spiffe://company.example/ns/x/sa/alice\r\n",
		"X-Envoy-Original-Path: /admin\r\nX-Original-URL: /admin\r\n",
		"X-Forwarded-For: 127.0.0.1\r\nX-Envoy-Internal: true\r\n",
		"X-HTTP-Method-Override: GET\r\n", "Host: admin\r\n", "Connection: X-Forwarded-Client-Cert\r\n",
	} {
		refused(headers, bob, "/hello", headers)
	}
	for _, target := range []string{"http://spiffe://company.example/ns/x/", "http://company.example/hello",
		"https://alice@backend/hello", "//company.example/ns/x/"} {
		refused(target, bob, target, "")
	}
	// A client that is allowed one path only cannot claim it by :authority, or by any header.
	admin := company.certificate("spiffe://company.example/admin")
	refused("authority", admin, "http://backend/hello?/admin", "")
	refused("absolute form", admin, "http://backend/admin/../hello", "")
	refused("original path", admin, "/hello",
		"X-Envoy-Original-Path: /admin\r\nX-Original-URL: /admin\r\nX-Rewrite-URL: /admin\r\n")
}

// malformed holds URI SANs that are not a single SPIFFE ID of the company. Several of them begin like one that is
// allowed.
var malformed = [][]string{
	{},
	{"spiffe://company.example/ns/x/sa/mallory", "spiffe://company.example/ns/x/sa/alice"},
	{"spiffe://company.example/ns/x/sa/alice", "spiffe://company.example/ns/x/sa/mallory"},
	{"spiffe://company.example/ns/x/sa/alice", "https://company.example/"},
	{"https://company.example/", "spiffe://company.example/ns/x/sa/alice"},
	{"spiffe://company.example/ns/x/sa/a,spiffe://company.example/ns/x/sa/b"},
	{"spiffe://company.example"}, {"spiffe://company.example/"}, {"spiffe:company.example/ns/x/sa/alice"},
	{"spiffe://COMPANY.example/ns/x/sa/alice"}, {"https://company.example/ns/x/sa/alice"},
	{"spiffe://user@company.example/ns/x/sa/alice"}, {"spiffe://company.example:443/ns/x/sa/alice"},
	{"spiffe://company.example.evil/ns/x/sa/alice"}, {"spiffe://company.example//ns/x/sa/alice"},
	{"urn:spiffe://company.example/ns/x/sa/alice"},
	{"spiffe://company.example/ns/x/../y/sa/bob"}, {"spiffe://company.example/ns/x/%2e%2e/y/sa/bob"},
	{"spiffe://company.example/ns/x//sa/bob"},
	{"spiffe://company.example/ns/x/sa/bob?x=1"}, {"spiffe://company.example/ns/x/sa/bob#x"},
	{"spiffe://company.example/ns/x/"},
	{"spiffe://company.example/ns/x/sa/"}, {"spiffe://company.example/ns/x/./sa/bob"},
}
