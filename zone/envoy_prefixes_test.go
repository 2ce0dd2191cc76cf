package zone_test

import (
	"fmt"
	"net/http"
	"testing"
)

// TestPrefixesWithAndWithoutASlash: a prefix of paths ends at a segment, whether or not it is written with a slash at its
// end, in routes, in permissions and in matches of policies. Kuma takes it without; kds writes it so for its zones
// (kds/exchange/testdata/filter.yaml).
func TestPrefixesWithAndWithoutASlash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.service("backend")
	ports, e := w.caller("caller", "{kind: MeshService, name: backend}")
	w.allowAll()
	eventually(t, "reachable", ok(ports[0], "/"))
	for name, policy := range map[string]string{
		"a route": `{type: MeshHTTPRoute, mesh: default, name: p, spec: {to: [{targetRef: {kind: MeshService, name: backend}, rules: [
  {matches: [{path: {type: PathPrefix, value: %s}}], default: {filters: [{type: RequestRedirect, requestRedirect: {hostname: elsewhere, statusCode: 302}}]}}]}]}}`,
		"a permission":    `{type: MeshTrafficPermission, mesh: default, name: p, spec: {rules: [{default: {deny: [{path: {type: Prefix, value: %s}}]}}]}}`,
		"a fault's match": `{type: MeshFaultInjection, mesh: default, name: p, spec: {rules: [{matches: [{path: {type: Prefix, value: %s}}], default: {http: [{abort: {httpStatus: 418, percentage: 100}}]}}]}}`,
	} {
		for _, prefix := range []string{"/v2", "/v2/"} {
			r := w.resource(fmt.Sprintf(policy, prefix))
			w.put(r)
			takes := func(path string) bool { code, _ := plain(ports[0], path); return code != http.StatusOK }
			eventually(t, name+" by "+prefix, func() bool { return takes("/v2/x") })
			for path, want := range map[string]bool{"/v2": true, "/v2/": true, "/v2?q": true, "/v2x": false, "/v": false, "/": false} {
				if takes(path) != want {
					t.Errorf("%s by %s takes %s: %v, want %v", name, prefix, path, !want, want)
				}
			}
			w.remove(r.Type, "p")
			eventually(t, "without it", ok(ports[0], "/v2/x"))
		}
	}
	e.refusedNothing()
}
