package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// The documents of TestSync, by name.
const (
	backendService = `{type: MeshService, mesh: default, namespace: backend-ns, name: backend, spec: {
  selector: {dataplaneLabels: {matchLabels: {app: backend}}}, ports: [{name: http, port: 80, appProtocol: http}]}}`
	systemOfGlobal = `{type: MeshTimeout, mesh: default, name: of-global, spec: {to: [{targetRef: {kind: Mesh}, default: {http: {requestTimeout: 7s}}}]}}`
	systemOfZone   = `{type: MeshTimeout, mesh: default, name: of-zone, spec: {to: [{targetRef: {kind: Mesh}, default: {http: {requestTimeout: 6s}}}]}}`
	producer       = `{type: MeshTimeout, mesh: default, namespace: backend-ns, name: producer, spec: {to: [
  {targetRef: {kind: MeshService, name: backend}, default: {http: {requestTimeout: 5s}}}]}}`
	consumer = `{type: MeshTimeout, mesh: default, namespace: frontend-ns, name: consumer, spec: {to: [
  {targetRef: {kind: MeshService, name: backend, namespace: backend-ns}, default: {http: {requestTimeout: 3s}}}]}}`
	workloadOwner = `{type: MeshTrafficPermission, mesh: default, namespace: backend-ns, name: workload-owner, spec: {default: {}}}`
	staysHome     = `{type: MeshTimeout, mesh: default, name: stays-home, labels: {kuma.io/kds-sync: disabled}, spec: {to: [{targetRef: {kind: Mesh}, default: {http: {requestTimeout: 1s}}}]}}`
	lastOfGlobal  = `{type: MeshTimeout, mesh: default, name: last-of-global, spec: {to: [{targetRef: {kind: Mesh}, default: {http: {requestTimeout: 9s}}}]}}`
)

// TestSync checks where policies go, depending on their author and target.
func TestSync(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1", "zone-2")
	zone1, zone2 := m.zones["zone-1"], m.zones["zone-2"]
	m.apply(zone1, strings.Join([]string{backendService, consumer, systemOfZone, staysHome, workloadOwner, producer},
		"\n---\n"))
	m.apply(m.global, systemOfGlobal+"\n---\n"+staysHome)
	m.apply(m.global, lastOfGlobal)

	// The last write on a stream arrives last: what is not there by then will not arrive.
	m.arrives(zone2, "producer")
	for _, s := range []*cluster.Server{zone1, zone2} {
		m.arrives(s, "last-of-global")
	}
	m.arrives(m.global, "producer")

	for _, tt := range []struct {
		server *cluster.Server
		want   string
	}{
		{m.global, "consumer last-of-global of-global of-zone producer stays-home"},
		{zone1, "consumer last-of-global of-global of-zone producer stays-home"},
		{zone2, "last-of-global of-global producer"},
	} {
		all, err := timeouts(t.Context(), tt.server)
		m.must(err)
		var got []string
		for _, name := range []string{"consumer", "last-of-global", "of-global", "of-zone", "producer", "stays-home"} {
			if _, ok := all[name]; ok {
				got = append(got, name)
				delete(all, name)
			}
		}
		if strings.Join(got, " ") != tt.want || len(all) > 0 {
			t.Errorf("%s has %q and %v, want %q", tt.server.Name(), got, all, tt.want)
		}
	}
	m.checkLabels()
	m.checkReference(zone2)
	m.checkRoles(zone1)
	m.checkCopiesAreFixed(zone2)

	m.remove(zone1, producer)
	m.remove(m.global, systemOfGlobal)
	m.leaves(zone2, "producer")
	m.leaves(m.global, "producer")
	m.leaves(zone1, "of-global")
	m.leaves(zone2, "of-global")
	m.arrives(zone2, "last-of-global")
}

// arrives waits for a MeshTimeout with that display name.
func (m *mesh) arrives(s *cluster.Server, name string) cluster.Item {
	m.t.Helper()
	var found cluster.Item
	m.eventually(name+" on "+s.Name(), func(ctx context.Context) error {
		all, err := timeouts(ctx, s)
		if err != nil {
			return err
		}
		it, ok := all[name]
		if !ok {
			return errNotYet
		}
		found = it
		return nil
	})
	return found
}

func (m *mesh) leaves(s *cluster.Server, name string) {
	m.t.Helper()
	m.eventually(name+" to leave "+s.Name(), func(ctx context.Context) error {
		all, err := timeouts(ctx, s)
		if _, ok := all[name]; ok && err == nil {
			err = errNotYet
		}
		return err
	})
}

// checkLabels checks that a copy names its origin, and that its KRI is the same on all servers.
func (m *mesh) checkLabels() {
	m.t.Helper()
	const kri = "kri_mt_default_zone-1_backend-ns_producer_"
	for _, tt := range []struct {
		server *cluster.Server
		origin string
	}{{m.global, "zone"}, {m.zones["zone-1"], "zone"}, {m.zones["zone-2"], "global"}} {
		it := m.arrives(tt.server, "producer")
		if it.Labels["kuma.io/origin"] != tt.origin || it.Labels["kuma.io/zone"] != "zone-1" ||
			it.Labels["k8s.kuma.io/namespace"] != "backend-ns" {
			m.t.Errorf("on %s the producer's labels are %v", tt.server.Name(), it.Labels)
		}
		var byKRI cluster.Item
		if err := tt.server.API.Get(m.t.Context(), "/_kri/"+kri, &byKRI); err != nil || byKRI.Name != it.Name {
			m.t.Errorf("on %s, %s is %q (%v), want %q", tt.server.Name(), kri, byKRI.Name, err, it.Name)
		}
	}
}

// checkReference checks that the producer's reference names the copy of its MeshService.
func (m *mesh) checkReference(s *cluster.Server) {
	m.t.Helper()
	var spec struct {
		To []struct {
			TargetRef struct{ Name, Namespace string }
		}
	}
	m.must(json.Unmarshal(m.arrives(s, "producer").Spec, &spec))
	services, err := byDisplayName(m.t.Context(), s, "/meshes/default/meshservices")
	m.must(err)
	if got, want := spec.To[0].TargetRef.Name, services["backend"].Name; got != want || want == "backend" {
		m.t.Errorf("on %s the policy refers to %q, and the copy of the service is %q", s.Name(), got, want)
	}
}

func (m *mesh) checkRoles(s *cluster.Server) {
	m.t.Helper()
	all, err := timeouts(m.t.Context(), s)
	m.must(err)
	permissions, err := byDisplayName(m.t.Context(), s, "/meshes/default/meshtrafficpermissions")
	m.must(err)
	all["workload-owner"] = permissions["workload-owner"]
	for name, role := range map[string]string{"producer": "producer", "consumer": "consumer", "of-zone": "system",
		"workload-owner": "workload-owner"} {
		if got := all[name].Labels["kuma.io/policy-role"]; got != role {
			m.t.Errorf("the role of %s is %q, want %q", name, got, role)
		}
	}
	onGlobal, err := byDisplayName(m.t.Context(), m.global, "/meshes/default/meshtrafficpermissions")
	m.must(err)
	if _, ok := onGlobal["workload-owner"]; !ok {
		m.t.Error("the workload owner's policy is not on the global")
	}
	elsewhere, err := byDisplayName(m.t.Context(), m.zones["zone-2"], "/meshes/default/meshtrafficpermissions")
	m.must(err)
	if _, ok := elsewhere["workload-owner"]; ok {
		m.t.Error("the workload owner's policy went to another zone")
	}
}

// checkCopiesAreFixed checks that users can neither change nor delete a copy of a policy, and that the error names the
// server where they can.
func (m *mesh) checkCopiesAreFixed(s *cluster.Server) {
	m.t.Helper()
	for _, name := range []string{"producer", "of-global"} {
		it := m.arrives(s, name)
		path := "/meshes/default/meshtimeouts/" + it.Name
		err := s.API.Delete(m.t.Context(), path)
		if status := cluster.StatusOf(err); status/100 != 4 {
			m.t.Errorf("deleting the copy %s: %v, want a 4xx", it.Name, err)
		}
		changed := map[string]any{"type": "MeshTimeout", "mesh": "default", "name": it.Name, "spec": map[string]any{
			"to": []any{map[string]any{"targetRef": map[string]any{"kind": "Mesh"},
				"default": map[string]any{"http": map[string]any{"requestTimeout": "1h"}}}},
		}}
		err = s.API.Put(m.t.Context(), path, changed)
		if status := cluster.StatusOf(err); status/100 != 4 {
			m.t.Errorf("changing the copy %s: %v, want a 4xx", it.Name, err)
		}
	}
	err := s.API.Put(m.t.Context(), "/meshes/other", map[string]any{"type": "Mesh", "name": "other"})
	if status := cluster.StatusOf(err); status/100 != 4 || !strings.Contains(fmt.Sprint(err), "global") {
		m.t.Errorf("a Mesh on a zone: %v, want a 4xx that says to write it on the global", err)
	}
	dataplane := map[string]any{"type": "Dataplane", "mesh": "default", "name": "d", "networking": map[string]any{
		"address": "127.0.0.1", "inbound": []any{map[string]any{"port": 80}},
	}}
	err = m.global.API.Put(m.t.Context(), "/meshes/default/dataplanes/d", dataplane)
	if status := cluster.StatusOf(err); status/100 != 4 || !strings.Contains(fmt.Sprint(err), "zone") {
		m.t.Errorf("a Dataplane on the global: %v, want a 4xx that says to write it on its zone", err)
	}
}

// TestNamesThatCollide covers two zones whose resources get the same hashed name, because the hash has no separators.
// Both are kept, and each zone can change its own.
func TestNamesThatCollide(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "ab", "a")
	policy := func(namespace, timeout string) string {
		return fmt.Sprintf(`{type: MeshTimeout, mesh: default, namespace: %s, name: p, spec: {from: [{targetRef: {kind: Mesh}, default: {http: {requestTimeout: %s}}}]}}`, namespace, timeout)
	}
	of := func() map[string]string {
		items, err := m.global.API.List(t.Context(), "/meshes/default/meshtimeouts")
		m.must(err)
		specs := map[string]string{}
		for i := range items {
			specs[items[i].Labels["kuma.io/zone"]] += string(items[i].Spec)
		}
		return specs
	}
	m.apply(m.zones["ab"], policy("c", "1s"))
	m.arrives(m.global, "p")
	m.apply(m.zones["a"], policy("bc", "2s"))
	m.must(cluster.Until(t.Context(), patience, "both on the global", func(context.Context) error {
		if got := of(); !strings.Contains(got["ab"], "1s") || !strings.Contains(got["a"], "2s") {
			return fmt.Errorf("there are %v", got)
		}
		return nil
	}))
	m.apply(m.zones["a"], policy("bc", "3s"))
	m.must(cluster.Until(t.Context(), patience, "the change of the second", func(context.Context) error {
		if got := of(); len(got) != 2 || !strings.Contains(got["ab"], "1s") || !strings.Contains(got["a"], "3s") {
			return fmt.Errorf("there are %v", got)
		}
		return nil
	}))
}
