package zone_test

import (
	"net/http"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// TestMethodsInDisguise: a method that is not registered, or not in capitals, is answered before any rule. If rules
// name methods, a request that asks to be treated as one with another method is denied. Each request has a twin that
// passes.
func TestMethodsInDisguise(t *testing.T) {
	t.Parallel()
	for _, form := range []rbac.Form{rbac.List, rbac.Compiled} {
		t.Run(string(form), func(t *testing.T) { methodsInDisguise(t, form) })
	}
}

func methodsInDisguise(t *testing.T, form rbac.Form) {
	w, port := newDisguiseWorld(t, form, `---
{type: MeshTrafficPermission, mesh: default, name: methods, spec: {targetRef: {kind: Dataplane, labels: {app: backend}}, default: {
  deny: [{method: DELETE}], allow: [{spiffeId: {type: Prefix, value: "spiffe://default.zone-1.mesh.local/workload/alice"}}]}}}`)
	certificate := w.certificate("alice")
	for _, send := range []func(*testing.T, []rawRequest) []rawAnswer{
		func(t *testing.T, q []rawRequest) []rawAnswer { return oneByOne(t, certificate, port, q) },
		func(t *testing.T, q []rawRequest) []rawAnswer { return multiplexed(t, certificate, port, q) },
	} {
		ask := func(q rawRequest) int { return send(t, []rawRequest{q})[0].status }
		for _, method := range []string{"delete", "Delete", "DELETe", "get", "DELETED", "DELETE2", "XDELETE", "PURGE",
			"GE", "FOO", "G-E-T", "GET'"} {
			if got := ask(rawRequest{method: method, target: "/x"}); got != http.StatusBadRequest {
				t.Errorf("%s: %d", method, got)
			}
		}
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "OPTIONS", "PROPFIND", "MKCOL", "REPORT"} {
			if got := ask(rawRequest{method: method, target: "/x", headers: "content-length: 0\r\n"}); got != http.StatusOK {
				t.Errorf("%s: %d", method, got)
			}
		}
		for _, q := range []rawRequest{
			{"DELETE", "/x", ""}, {"POST", "/x", "x-http-method-override: DELETE\r\n"},
			{"GET", "/x", "X-HTTP-Method: delete\r\n"},
			{"POST", "/x", "x-method-override: DELETE\r\n"}, {"POST", "/x", "x_http_method_override: DELETE\r\n"},
			{"POST", "/x", "x-http_method-override: DELETE\r\n"},
			{"POST", "/x?_method=DELETE", ""}, {"POST", "/x?a&%5fmethod=delete", ""}, {"POST", "/x?a;_%6Dethod=delete", ""},
			{"POST", "/x?.method=DELETE", ""}, {"POST", "/x?%20+_method=DELETE", ""}, {"POST", "/x?a&%2emethod%00[]=DELETE", ""},
		} {
			if got := ask(q); got != http.StatusForbidden {
				t.Errorf("%+v: %d", q, got)
			}
		}
		for _, name := range []string{"x.http.method.override", "x-http-method!override", "X_HTTP~Method", "x+method-override"} {
			if got := send(t, []rawRequest{{"POST", "/x", name + ": DELETE\r\n"}})[0]; got.status != http.StatusOK || got.steered != "" {
				t.Errorf("%s: %d, and the application was told %q", name, got.status, got.steered)
			}
		}
		for _, q := range []rawRequest{{"POST", "/x?method=DELETE&a_method=x", ""}, {"POST", "/x?x.method=DELETE", ""},
			{"POST", "/x", "x-method: DELETE\r\n"}, {"POST", "/_method=DELETE", ""}} {
			if got := ask(q); got != http.StatusOK {
				t.Errorf("%+v: %d", q, got)
			}
		}
	}
	if !resources.IsRegisteredMethod("DELETE") || resources.IsRegisteredMethod("delete") {
		t.Error("methods have case")
	}
}

// TestDeniedGetAsHead: a deny of GET is no deny that HEAD passes; an allow of GET is none of HEAD.
func TestDeniedGetAsHead(t *testing.T) {
	t.Parallel()
	for _, form := range []rbac.Form{rbac.List, rbac.Compiled} {
		w, port := newDisguiseWorld(t, form, `---
{type: MeshTrafficPermission, mesh: default, name: methods, spec: {targetRef: {kind: Dataplane, labels: {app: backend}}, default: {
  deny: [{method: GET, path: {type: Prefix, value: /denied}}], allow: [
    {spiffeId: {type: Prefix, value: "spiffe://default.zone-1.mesh.local/workload/alice"}, path: {type: Prefix, value: /denied}},
    {spiffeId: {type: Prefix, value: "spiffe://default.zone-1.mesh.local/workload/alice"}, method: GET}]}}}`)
		certificate := w.certificate("alice")
		for _, c := range []struct {
			method, path string
			want         int
		}{{"GET", "/denied", http.StatusForbidden}, {"HEAD", "/denied", http.StatusForbidden}, {"OPTIONS", "/denied", http.StatusOK},
			{"GET", "/open", http.StatusOK}, {"HEAD", "/open", http.StatusForbidden}} {
			if got := multiplexed(t, certificate, port, []rawRequest{{c.method, c.path, ""}})[0].status; got != c.want {
				t.Errorf("%s, %s %s: %d, want %d", form, c.method, c.path, got, c.want)
			}
		}
	}
}
