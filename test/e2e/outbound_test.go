package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// What the owner of backend writes in zone-1, and the owner of frontend in zone-2.
const (
	servicesOfBackend = `{type: MeshService, mesh: default, namespace: backend-ns, name: backend, spec: {
  selector: {dataplaneLabels: {matchLabels: {version: v1}}}, ports: [{name: http, port: 80, targetPort: http, appProtocol: http}]}}
---
{type: MeshService, mesh: default, namespace: backend-ns, name: backend-v2, spec: {
  selector: {dataplaneLabels: {matchLabels: {version: v2}}}, ports: [{name: http, port: 80, targetPort: http, appProtocol: http}]}}
---
{type: MeshTrafficPermission, mesh: default, namespace: backend-ns, name: allow-frontend, spec: {rules: [{default: {allow: [
  {spiffeId: {type: Exact, value: "spiffe://default.zone-2.mesh.local/ns/frontend-ns/sa/frontend"}}]}}]}}`
	routeOfBackend = `{type: MeshHTTPRoute, mesh: default, namespace: backend-ns, name: backend-route, spec: {to: [{targetRef: {kind: MeshService, name: backend}, rules: [
  {matches: [{path: {type: PathPrefix, value: /wait}}], default: {backendRefs: [{kind: MeshService, name: backend-v2, port: 80}]}}]}]}}`
	timeoutOfBackendRoute = `{type: MeshTimeout, mesh: default, namespace: backend-ns, name: backend-route-timeout, spec: {to: [
  {targetRef: {kind: MeshHTTPRoute, name: backend-route}, default: {http: {requestTimeout: 1500ms}}}]}}`
	timeoutOfFrontend = `{type: MeshTimeout, mesh: default, namespace: frontend-ns, name: frontend-to-backend, spec: {to: [
  {targetRef: {kind: MeshHTTPRoute, labels: {kuma.io/display-name: backend-route, k8s.kuma.io/namespace: backend-ns, kuma.io/zone: zone-1}},
   default: {http: {requestTimeout: 400ms}}}]}}`
)

// TestRouteOfAnotherZone plays, with traffic, the example "Policy in zone-1 references MeshHTTPRoute": a producer's
// route and its timeout apply to a caller in another zone, and the caller's own policy on that route beats the timeout.
func TestRouteOfAnotherZone(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1", "zone-2")
	zone1, zone2 := m.zones["zone-1"], m.zones["zone-2"]
	for name, version := range map[string]string{"backend": "v1", "backend-v2": "v2"} {
		w, err := m.StartWorkload(t.Context(), cluster.WorkloadConfig{
			Zone: zone1, Mesh: "default", Namespace: "backend-ns", Name: name, ServiceAccount: name,
			Labels:   map[string]string{"version": version},
			Inbounds: []cluster.InboundConfig{{Name: "http", Protocol: cluster.ProtocolHTTP}},
		})
		m.must(err)
		t.Cleanup(w.Close)
	}
	_, err := m.StartIngress(t.Context(), zone1, "ingress")
	m.must(err)
	m.apply(zone1, servicesOfBackend)
	frontend, err := m.StartWorkload(t.Context(), cluster.WorkloadConfig{
		Zone: zone2, Mesh: "default", Namespace: "frontend-ns", Name: "frontend", ServiceAccount: "frontend",
		Inbounds: []cluster.InboundConfig{{Name: "http", Protocol: cluster.ProtocolHTTP}},
		Outbounds: []cluster.OutboundConfig{{Name: "backend", BackendRef: map[string]any{
			"kind": "MeshService", "labels": map[string]any{"kuma.io/display-name": "backend", "kuma.io/zone": "zone-1"},
		}}},
	})
	m.must(err)
	t.Cleanup(frontend.Close)

	m.answered(frontend, "/wait/1ms", "backend in zone-1")
	m.apply(zone1, routeOfBackend)
	m.answered(frontend, "/wait/1ms", "backend-v2 in zone-1")
	m.answered(frontend, "/", "backend in zone-1")
	m.apply(zone1, timeoutOfBackendRoute)
	m.endsAfter(frontend, "/wait/4s", 1500*time.Millisecond)
	m.apply(zone2, timeoutOfFrontend)
	m.endsAfter(frontend, "/wait/4s", 400*time.Millisecond)
	m.remove(zone2, timeoutOfFrontend)
	m.endsAfter(frontend, "/wait/4s", 1500*time.Millisecond)
}

// answered waits until the service answers a call.
func (m *mesh) answered(w *cluster.Workload, path, service string) {
	m.t.Helper()
	m.eventually(path+" answered by "+service, func(ctx context.Context) error {
		status, body, err := w.Call(ctx, "backend", path)
		if err == nil && (status != http.StatusOK || !strings.Contains(body, fmt.Sprintf("%q", service))) {
			err = fmt.Errorf("got %d %s", status, body)
		}
		return err
	})
}

// endsAfter waits until a call times out after d, neither earlier nor much later.
func (m *mesh) endsAfter(w *cluster.Workload, path string, d time.Duration) {
	m.t.Helper()
	m.eventually(fmt.Sprintf("%s to end after %s", path, d), func(ctx context.Context) error {
		start := time.Now()
		status, _, err := w.Call(ctx, "backend", path)
		if took := time.Since(start); err == nil &&
			(status != http.StatusGatewayTimeout || took < d-50*time.Millisecond || took > d+800*time.Millisecond) {
			err = fmt.Errorf("got %d after %s", status, took)
		}
		return err
	})
}
