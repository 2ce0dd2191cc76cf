package resources_test

import (
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// TestExternalWarnings checks the warning for a MeshExternalService that no proxy can dial.
func TestExternalWarnings(t *testing.T) {
	const endpoints = `"match": {"port": 443}, "endpoints": [{"address": "example.com", "port": 443}]`
	for spec, want := range map[string]string{
		`{"match": {"port": 443}}`: "has no endpoints",
		`{` + endpoints +
			`}`: "",
		`{` + endpoints + `, "tls": {"enabled": false}}`:                                                                                                                   "",
		`{` + endpoints + `, "tls": {"enabled": true}}`:                                                                                                                    "tls.verification.caCert: holds no certificate",
		`{` + endpoints + `, "tls": {"enabled": "yes"}}`:                                                                                                                   "tls: ",
		`{` + endpoints + `, "tls": {"pinned": true}}`:                                                                                                                     `unknown field "pinned"`,
		`{` + endpoints + `, "tls": {"enabled": true, "verification": {"mode": "SkipAll"}}}`:                                                                               "",
		`{` + endpoints + `, "tls": {"enabled": true, "verification": {"mode": "SkipCA"}}}`:                                                                                "use SkipAll",
		`{` + endpoints + `, "tls": {"enabled": true, "verification": {"mode": "Never"}}}`:                                                                                 `got "Never"`,
		`{` + endpoints + `, "tls": {"enabled": true, "verification": {"mode": "SkipAll", "clientCert": {"inlineString": "x"}}}}`:                                          "require each other",
		`{` + endpoints + `, "tls": {"enabled": true, "verification": {"mode": "SkipAll", "clientCert": {"secret": "x"}}}}`:                                                "require each other",
		`{` + endpoints + `, "tls": {"enabled": true, "verification": {"mode": "SkipAll", "clientCert": {"inlineString": "x"}, "clientKey": {"secret": "x"}}}}`:            "",
		`{` + endpoints + `, "tls": {"enabled": true, "verification": {"mode": "SkipAll", "clientCert": {"inlineString": "x"}, "clientKey": {"file": {"path": "../x"}}}}}`: "clientKey.file.path: ",
		`{` + endpoints + `, "tls": {"enabled": true, "verification": {"mode": "SkipAll", "clientCert": {"inlineString": "x"}, "clientKey": {"secret": "a/b"}}}}`:          "clientKey.secret: ",
		`{` + endpoints + `, "tls": {"enabled": true, "verification": {"mode": "SkipAll", "clientCert": {"inlineString": "x"}, "clientKey": {"inlineString": "y"}}}}`:      "a secret in the resource goes wherever",
		`{` + endpoints + `, "tls": {"enabled": true, "verification": {"caCert": {"secret": "x"}}}}`:                                                                       "caCert.secret: ",
		`{` + endpoints + `, "tls": {"enabled": true, "verification": {"mode": "SkipAll", "clientCert": {"inline": "!"}}}}`:                                                "clientCert.inline: ",
		`{` + endpoints + `, "tls": {"enabled": true, "verification": {"mode": "SkipAll", "subjectAltNames": [{"type": "Suffix"}]}}}`:                                      "subjectAltNames[0].type",
		`{` + endpoints + `, "tls": {"enabled": true, "version": {"min": "SSL3"}, "verification": {"mode": "SkipAll"}}}`:                                                   "tls.version",
	} {
		r := policyIn(t, resources.Home{Zone: "zone-1"}, resources.TypeMeshExternalService, "", spec)
		if got := strings.Join(resources.Warnings(r), "\n"); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: want %q, got %q", spec, want, got)
		}
	}
}

// TestTrustWarnings checks the warning for a MeshTrust with the trust domain of another zone.
func TestTrustWarnings(t *testing.T) {
	for _, c := range []struct {
		zone, domain, want string
	}{
		{"zone-1", "default.zone-1.mesh.local", ""},
		{"zone-1", "default.zone-2.mesh.local", "no proxy trusts it: zone zone-1 may only speak for *.zone-1.mesh.local"},
		{"zone-1", "example.com", "no proxy trusts it"},
		{"", "default.zone-2.mesh.local", "looks like the trust domain of a zone"},
		{"", "example.com", ""},
	} {
		r := policyIn(t, resources.Home{Zone: c.zone}, resources.TypeMeshTrust, "", `{"trustDomain": "`+c.domain+`"}`)
		if got := strings.Join(resources.Warnings(r), "\n"); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s in %q: want %q, got %q", c.domain, c.zone, c.want, got)
		}
	}
}

// TestWarnings checks that only allowed prefixes that end inside a segment, or before a trust domain, allows without an
// identity, and allows of every path, cause warnings.
func TestWarnings(t *testing.T) {
	for spec, want := range map[string]int{
		`{"default":{"allow":[{"spiffeId":{"type":"Prefix","value":"spiffe://a/ns/observability"}}]}}`:                          1,
		`{"rules":[{"default":{"allowWithShadowDeny":[{"spiffeId":{"type":"Prefix","value":"spiffe://a/ns/x"}}]}}]}`:            1,
		`{"default":{"allow":[{"spiffeId":{"type":"Prefix","value":"spiffe://a/ns/"}}]}}`:                                       0,
		`{"default":{"allow":[{"spiffeId":{"type":"Prefix","value":"spiffe://"}}]}}`:                                            1,
		`{"default":{"deny":[{"spiffeId":{"type":"Prefix","value":"spiffe://"}}]}}`:                                             0,
		`{"default":{"deny":[{"spiffeId":{"type":"Prefix","value":"spiffe://a/ns/x"}}]}}`:                                       0,
		`{"default":{"allow":[{"spiffeId":{"type":"Exact","value":"spiffe://a/ns/x"}}]}}`:                                       0,
		`{"from":[{"default":{"action":"Allow"}}]}`:                                                                             0,
		`{"default":{"allow":[{"path":{"type":"Exact","value":"/a"}}]}}`:                                                        1,
		`{"default":{"deny":[{"path":{"type":"Prefix","value":"/"}}]}}`:                                                         0,
		`{"default":{"allow":[{"path":{"type":"Prefix","value":"/"}, "spiffeId":{"type":"Exact","value":"spiffe://a/ns/x"}}]}}`: 1,
	} {
		r := policyIn(t, resources.Home{}, resources.TypeMeshTrafficPermission, "", spec)
		if got := resources.Warnings(r); len(got) != want {
			t.Errorf("%s: want %d, got %q", spec, want, got)
		}
	}
}

// TestGatewayWarnings checks that exactly the parts of a MeshGateway that no proxy serves cause warnings. Users cannot
// write them.
func TestGatewayWarnings(t *testing.T) {
	listeners := map[string]string{
		`{"port":80,"protocol":"HTTP"}`: "",
		`{"port":443,"protocol":"HTTPS","tls":{"mode":"TERMINATE","certificates":[{"secret":"a"}]}}`: "",
		`{"port":443,"protocol":"HTTPS","tls":{"mode":"PASSTHROUGH"}}`:                               "",
		`{"port":53,"protocol":"UDP"}`:                                    "the protocol UDP is not served",
		`{"port":80,"protocol":"HTTP","crossMesh":true}`:                  "crossMesh",
		`{"port":80,"protocol":"HTTP","resources":{"connectionLimit":1}}`: "connectionLimit: is not enforced",
		`{"port":0,"protocol":"HTTP"}`:                                    "port: want",
		`{"port":80,"protocol":"HTTP","hostname":"*.*.a"}`:                "is not a hostname",
		`{"port":443,"protocol":"TLS"}`:                                   "tls.mode",
		`{"port":443,"protocol":"HTTPS","tls":{"mode":"TERMINATE"}}`:      "tls.certificates: there are none",
	}
	for listener, want := range listeners {
		r := policyIn(t, resources.Home{}, resources.TypeMeshGateway, "", `{"conf":{"listeners":[`+listener+`]}}`)
		got := resources.Warnings(r)
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
			t.Errorf("%s: %q", listener, got)
		}
	}
}

// TestOutboundWarnings: an outbound that names no service gets no listener, and whoever writes it is told so.
func TestOutboundWarnings(t *testing.T) {
	const outbounds = `{"networking":{"address":"192.0.2.1","outbound":[{"port":1001,"backendRef":{"kind":"MeshService","name":"backend"}},{"port":1002,"tags":{"kuma.io/service":"backend"}},{"port":1003,"tags":{"version":"v1"}}]}}`
	got := resources.Warnings(policyIn(t, resources.Home{}, resources.TypeDataplane, "", outbounds))
	if len(got) != 1 || !strings.HasPrefix(got[0], "networking.outbound[2]: names no service, so the proxy does not listen: ") {
		t.Errorf("%q", got)
	}
}
