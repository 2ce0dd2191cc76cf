package zone_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
)

// TestPatchesOfSomeListeners shows how a MeshProxyPatch selects among the listeners, filters and routes of one proxy:
// by tags of the inbound (tags, listenerTags), by the listener's name (listenerName), and by that of the routes
// (routeConfigurationName). The other inbound stays as it is.
func TestPatchesOfSomeListeners(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, _ := application(t)
	one, two := freePort(t), freePort(t)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: backend, networking: {address: 127.0.0.1, inbound: [
  {name: one, port: %d, servicePort: %d, protocol: http, tags: {version: v1}}, {name: two, port: %d, servicePort: %[2]d, protocol: http, tags: {version: v2}}]}}
---
{type: MeshTrafficPermission, mesh: default, name: all, spec: {rules: [{default: {allow: [{spiffeId: {type: Prefix, value: "spiffe://"}}]}}]}}`,
		one, service, two))
	e := w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	client := w.client("client")
	const (
		named    = `value: "{name: a, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, server_header_transformation: APPEND_IF_ABSENT, server_name: patched}}"`
		teapot   = `value: "{name: teapot, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault, abort: {http_status: 418, percentage: {numerator: 100}}}}"`
		manager  = "name: envoy.filters.network.http_connection_manager"
		ofTwo    = "listenerName: self_inbound_dp_two"
		taggedV2 = "listenerTags: {version: v2}"
	)
	removed := func(a answered) bool { return a.status == 0 }
	renamed := func(a answered) bool { return a.header.Get("Server") == "patched" }
	brewing := func(a answered) bool { return a.status == http.StatusTeapot }
	marked := func(a answered) bool { return a.header.Get("X-Patched") == "yes" }
	for _, tt := range []struct {
		name, modification string
		changed            func(answered) bool
	}{
		{"network filters by the listener's name", "networkFilter: {operation: Patch, match: {" + manager + ", " + ofTwo + "}, " + named + "}", renamed},
		{"network filters by the listener's tags", "networkFilter: {operation: Patch, match: {" + manager + ", " + taggedV2 + "}, " + named + "}", renamed},
		{"HTTP filters by the listener's name", "httpFilter: {operation: AddLast, match: {" + ofTwo + "}, " + teapot + "}", brewing},
		{"HTTP filters by the listener's tags", "httpFilter: {operation: AddLast, match: {" + taggedV2 + "}, " + teapot + "}", brewing},
		{"virtual hosts by their routes", `virtualHost: {operation: Patch, match: {routeConfigurationName: self_inbound_dp_two}, value: "response_headers_to_add: [{header: {key: x-patched, value: 'yes'}}]"}`, marked},
		{"listeners by tags", "listener: {operation: Remove, match: {tags: {version: v2}}}", removed},
	} {
		ask := func(port int) answered { return askAs(t, client, "GET", port, "/") }
		unchanged := func(port int) bool { a := ask(port); return a.status == http.StatusOK && !tt.changed(a) }
		eventually(t, tt.name+": both as they are", func() bool { return unchanged(one) && unchanged(two) })
		w.apply("{type: MeshProxyPatch, mesh: default, name: p, spec: {default: {appendModifications: [{" + tt.modification + "}]}}}")
		soon(t, func() error {
			if a := ask(two); !tt.changed(a) {
				return fmt.Errorf("%s: %d %v, with the problems %s", tt.name, a.status, a.header, w.problems("backend"))
			}
			return nil
		})
		if !unchanged(one) {
			t.Errorf("%s: the other one is changed, too", tt.name)
		}
		w.remove(resources.TypeMeshProxyPatch, "p")
	}
	e.refusedNothing()
}
