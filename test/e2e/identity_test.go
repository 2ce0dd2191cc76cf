package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// What the owner of backend in zone-1 and an operator write about the identities of workloads.
const (
	serviceOfBackend = `{type: MeshService, mesh: default, namespace: backend-ns, name: backend, spec: {
  selector: {dataplaneLabels: {matchLabels: {app: backend}}}, ports: [{name: http, port: 80, targetPort: http, appProtocol: http}]}}`
	allowIdentity = `{type: MeshTrafficPermission, mesh: default, name: allow-%s, spec: {default: {allow: [{spiffeId: {type: Exact, value: "%s"}}]}}}`
	identityByApp = `{type: MeshIdentity, mesh: default, name: by-app, spec: {
  selector: {dataplane: {}}, spiffeID: {trustDomain: "{{ .Zone }}.example", path: '/app/{{ label "app" }}'}, provider: {type: Bundled}}}`
)

// startZoneWith starts a zone with more flags.
func (m *mesh) startZoneWith(name string, args ...string) *cluster.Server {
	m.t.Helper()
	zone, err := m.StartZone(m.t.Context(), cluster.ZoneConfig{Name: name, Global: m.global, Args: args})
	m.must(err)
	m.zones[name] = zone
	m.must(zone.WaitMesh(m.t.Context(), "default"))
	return zone
}

// across starts a backend in zone-1 behind its ingress, and a frontend in zone-2 that calls it.
func (m *mesh) across(zone1, zone2 *cluster.Server) (backend, frontend *cluster.Workload) {
	m.t.Helper()
	http := []cluster.InboundConfig{{Name: "http", Protocol: cluster.ProtocolHTTP}}
	backend = m.workload(zone1, http...)
	_, err := m.StartIngress(m.t.Context(), zone1, "ingress")
	m.must(err)
	m.apply(zone1, serviceOfBackend)
	frontend, err = m.StartWorkload(m.t.Context(), cluster.WorkloadConfig{
		Zone: zone2, Mesh: "default", Namespace: "frontend-ns", Name: "frontend", ServiceAccount: "frontend",
		Labels:   map[string]string{"app": "frontend"},
		Inbounds: http,
		Outbounds: []cluster.OutboundConfig{{Name: "backend", BackendRef: map[string]any{
			"kind": "MeshService", "labels": map[string]any{"kuma.io/display-name": "backend", "kuma.io/zone": "zone-1"},
		}}},
	})
	m.must(err)
	m.t.Cleanup(frontend.Close)
	return backend, frontend
}

// answers waits until a call to the outbound backend gets a status.
func (m *mesh) answers(w *cluster.Workload, want int) {
	m.t.Helper()
	m.eventually(fmt.Sprintf("calls of %s to be answered with %d", w.Name, want), func(ctx context.Context) error {
		status, body, err := w.Call(ctx, "backend", "/")
		if err == nil && status != want {
			err = fmt.Errorf("got %d %s", status, body)
		}
		return err
	})
}

// TestMeshIdentityAcrossZones checks that a MeshIdentity of the global gives workloads of two zones other trust domains
// and paths. They still reach each other, policies on the new identities apply and those on the old ones do not, and
// every report of a workload's identity agrees. Without the MeshIdentity, the old identities return.
func TestMeshIdentityAcrossZones(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	zone1, zone2 := m.startZoneWith("zone-1", "--identity-overlap", "-1s"),
		m.startZoneWith("zone-2", "--identity-overlap", "-1s")
	_, frontend := m.across(zone1, zone2)
	const before, after = "spiffe://default.zone-2.mesh.local/ns/frontend-ns/sa/frontend",
		"spiffe://zone-2.example/app/frontend"
	m.apply(m.global, fmt.Sprintf(allowIdentity, "before", before))
	m.answers(frontend, http.StatusOK)

	m.apply(m.global, identityByApp)
	m.isKnownAs(zone2, after)
	m.answers(frontend, http.StatusForbidden)
	m.apply(m.global, fmt.Sprintf(allowIdentity, "after", after))
	m.answers(frontend, http.StatusOK)
	m.eventually("the global to answer by the same identity", func(ctx context.Context) error {
		out, err := m.CTL(ctx, m.global, nil, "explain", "--to", "app=backend", "--from", after)
		if err == nil && !strings.HasPrefix(string(out), "allowed by") {
			err = fmt.Errorf("%s", out)
		}
		return err
	})
	m.eventually("zone-2 to say that it is ready", func(ctx context.Context) error {
		out, err := m.CTL(ctx, zone2, nil, "get", "meshidentities", "-o", "yaml")
		if err == nil && !strings.Contains(string(out), "type: Ready") {
			err = fmt.Errorf("%s", out)
		}
		return err
	})

	m.remove(m.global, identityByApp)
	m.isKnownAs(zone2, before)
	m.remove(m.global, fmt.Sprintf(allowIdentity, "after", after))
	m.answers(frontend, http.StatusOK)
}

// isKnownAs waits until every answer of the zone gives the frontend the identity id.
func (m *mesh) isKnownAs(zone *cluster.Server, id string) {
	m.t.Helper()
	m.eventually("the frontend to be "+id, func(ctx context.Context) error {
		var layout struct{ SpiffeID string }
		if err := zone.API.Get(ctx, "/meshes/default/dataplanes/frontend/_layout?namespace=frontend-ns",
			&layout); err != nil {
			return err
		}
		svid, err := zone.SVID(ctx, "default", "frontend-ns", "frontend")
		if err == nil && (svid.SpiffeID != id || layout.SpiffeID != id) {
			err = fmt.Errorf("its SVID is %s, its layout says %s", svid.SpiffeID, layout.SpiffeID)
		}
		return err
	})
}
