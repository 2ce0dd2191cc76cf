package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestPrintedReferencesResolve plays seed 004's example "Policy in zone-1 references MeshService in zone-1": the reference
// in a copy, as each server prints it, names an object there, by name and namespace, and means it in a policy of any
// namespace that repeats it. Its KRI is that of the original.
func TestPrintedReferencesResolve(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1")
	zone1, zone2 := m.zones["zone-1"], m.startZoneWith("zone-2", "--system-namespace", "mesh-two")
	m.apply(zone1, `{type: MeshService, mesh: default, namespace: backend-ns, name: backend, spec: {selector: {dataplaneLabels: {matchLabels: {app: backend}}}, ports: [{port: 80}]}}`)
	m.apply(zone1, `{type: MeshTimeout, mesh: default, namespace: backend-ns, name: producer-timeout, spec: {to: [{targetRef: {kind: MeshService, name: backend}, default: {connectionTimeout: 1s}}]}}`)
	m.apply(zone2, callersProxy)
	for s, namespace := range map[*cluster.Server]string{m.global: "kuma-system", zone2: "mesh-two"} {
		ref := m.printedReference(s, "producer-timeout")
		if ref["namespace"] != namespace || !strings.HasPrefix(ref["name"], "backend-") {
			t.Errorf("%s prints %v", s.Name(), ref)
		}
		var service struct{ KRI string }
		raw, err := m.CTL(t.Context(), s, nil, "get", "meshservice", ref["name"], "--namespace", ref["namespace"], "-o", "json")
		m.must(err)
		m.must(json.Unmarshal(raw, &service))
		if service.KRI != "kri_msvc_default_zone-1_backend-ns_backend_" {
			t.Errorf("%s: the reference is of %s", s.Name(), raw)
		}
	}
	// Repeated by a consumer.
	ref := m.printedReference(zone2, "producer-timeout")
	again := fmt.Sprintf(`{type: MeshTimeout, mesh: default, namespace: frontend-ns, name: again, spec: {to: [{targetRef: {kind: MeshService, name: %s, namespace: %s}, default: {connectionTimeout: 2s}}]}}`, ref["name"], ref["namespace"])
	got := m.mustForecast(zone2, again)
	if got.Role != "consumer" || slices.ContainsFunc(got.Warnings, func(w string) bool { return strings.Contains(w, "resolves to nothing") }) {
		t.Errorf("the reference in a consumer's policy: %+v", got)
	}
}

// printedReference is the first reference of a MeshTimeout, as a server prints it.
func (m *mesh) printedReference(s *cluster.Server, name string) map[string]string {
	m.t.Helper()
	var spec struct {
		To []struct{ TargetRef map[string]string }
	}
	m.must(json.Unmarshal(m.arrives(s, name).Spec, &spec))
	return spec.To[0].TargetRef
}
