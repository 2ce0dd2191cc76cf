package zone_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone"
)

// TestPatchesThatClose: what an operator closes by a patch stays closed, whatever patches of others Envoy refuses, from
// the first moment of a proxy. A required patch that has no effect closes the proxy.
func TestPatchesThatClose(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service, hits := application(t)
	port := freePort(t)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, namespace: shop, name: backend, labels: {app: backend, kuma.io/workload: backend}, networking: {address: 127.0.0.1, inbound: [{name: main, port: %d, servicePort: %d, protocol: http}]}}`,
		port, service))
	w.apply(`{type: MeshTrafficPermission, mesh: default, name: all, spec: {rules: [{default: {allow: [{spiffeId: {type: Prefix, value: "spiffe://"}}]}}]}}`)
	const (
		// closes answers everything but /open. Its targetRef makes it come after what an owner writes for all of hers.
		closes = `{virtualHost: {operation: Patch, match: {origin: inbound}, value: "{typed_per_filter_config: {envoy.filters.http.fault: {'@type': type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault, abort: {http_status: 418, percentage: {numerator: 100}}}}}"}}, {httpFilter: {operation: AddAfter, match: {name: self_inbound_dp_main_rbac_http}, value: "{name: closed, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault, abort: {http_status: 418, percentage: {numerator: 100}}}}"}}`
		// broken is none that Envoy takes.
		broken = `{networkFilter: {operation: AddFirst, match: {origin: inbound}, value: "{name: broken, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer, max_request_bytes: 7}}"}}`
		more   = `{listener: {operation: Patch, match: {origin: inbound}, value: "per_connection_buffer_limit_bytes: 77777"}}`
	)
	patch := func(namespace, name, labels, target, modifications string) {
		w.apply(fmt.Sprintf(`{type: MeshProxyPatch, mesh: default, name: %s%s, labels: {%s}, spec: {targetRef: {kind: %s}, default: {appendModifications: [%s]}}}`,
			name, namespace, labels, target, modifications))
	}
	client := w.client("caller")
	closed := func(what string, e *envoy) {
		t.Helper()
		eventually(t, what, func() bool { return askAs(t, client, "GET", port, "/").status == http.StatusTeapot })
		if hits() != 0 {
			t.Fatalf("%s: the application was reached", what)
		}
		if e == nil {
			return
		}
		eventually(t, what+": a patch that is not to blame", func() bool {
			return strings.Contains(e.get("/config_dump?resource=dynamic_listeners"), "77777")
		})
	}
	// All are there before the proxy: it has accepted none of them.
	patch("", "closes", "", "Dataplane, labels: {app: backend}", closes)
	patch(", namespace: shop", "broken", "", "Dataplane", broken)
	patch(", namespace: shop", "more", "", "Dataplane", more)
	patch("", "broken", "", "Mesh", broken)
	e := w.startEnvoy(zone.BootstrapConfig{Dataplane: "backend", Namespace: "shop"})
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() { // asks all the time
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				askAs(t, client, "GET", port, "/")
			}
		}
	}()
	closed("at the start", nil)
	closed("with the one that is not to blame", e)
	patch(", namespace: shop", "another", "", "Dataplane", strings.Replace(broken, "broken", "another", 1))
	w.insightSays("shop", "another_: the proxy refuses the result")
	closed("after another", e)

	// Required, and not to be had: nobody reaches the application, in no other way either.
	patch("", "closes", `causeway.io/required: "true"`, "Dataplane, labels: {app: backend}", closes+", "+strings.Replace(broken, "broken", "required", 1))
	w.insightSays("shop", "a required MeshProxyPatch has no effect")
	eventually(t, "nobody reaches it", func() bool { return askAs(t, client, "GET", port, "/").status == 0 })
	patch("", "closes", `causeway.io/required: "true"`, "Dataplane, labels: {app: backend}", closes)
	closed("a required one that is taken", nil)
	close(stop)
	<-done
	if hits() != 0 {
		t.Error("the application was reached")
	}
	w.remove(resources.TypeMeshProxyPatch, "closes")
	eventually(t, "open again", func() bool { return askAs(t, client, "GET", port, "/").status == http.StatusOK })
}

// insightSays waits until the insight of backend in a namespace says a text.
func (w *world) insightSays(namespace, text string) {
	w.t.Helper()
	eventually(w.t, "the insight: "+text, func() bool {
		insight := w.status.Snapshot().Get(resources.Key{Type: resources.TypeDataplaneInsight, Mesh: "default", Namespace: namespace, Name: "backend"})
		return insight != nil && strings.Contains(string(insight.Spec.JSON()), text)
	})
}
