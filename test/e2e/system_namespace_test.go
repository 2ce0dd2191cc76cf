package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// systemPolicy returns a timeout in a namespace, for a service of that namespace: a producer's, unless it is the system
// namespace.
func systemPolicy(namespace, name string) string {
	return fmt.Sprintf(`
type: MeshTimeout
mesh: default
namespace: %[1]s
name: %[2]s
spec:
  to:
    - targetRef: {kind: MeshService, name: backend, namespace: %[1]s}
      default: {http: {requestTimeout: 3s}}
`, namespace, name)
}

// rolesOf returns the roles of a server's timeouts, by their display names.
func rolesOf(ctx context.Context, s *cluster.Server) (map[string]string, error) {
	all, err := s.API.List(ctx, "/meshes/default/meshtimeouts")
	roles := map[string]string{}
	for _, it := range all {
		roles[it.Labels["kuma.io/display-name"]] = it.Labels["kuma.io/policy-role"]
	}
	return roles, err
}

// TestSystemNamespacesDiffer checks that each server has its own system namespace. What a zone wrote in its own has the
// same role on the global and reaches no other zone. What it wrote in a namespace that is another server's system
// namespace is not a system policy.
func TestSystemNamespacesDiffer(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	one := m.startZoneWith("zone-1", "--system-namespace", "mesh-one")
	two := m.startZoneWith("zone-2", "--system-namespace", "mesh-two")
	documents := []string{systemPolicy("mesh-one", "of-the-system"),
		systemPolicy("kuma-system", "global-calls-it-system"), systemPolicy("mesh-two", "other-calls-it-system"),
		systemPolicy("shop", "of-a-shop")}
	m.apply(one, strings.Join(documents, "---"))
	want := map[string]string{"of-the-system": "system", "global-calls-it-system": "producer",
		"other-calls-it-system": "producer", "of-a-shop": "producer"}
	for _, s := range []*cluster.Server{one, m.global} {
		m.eventually(s.Name()+" to know the roles", func(ctx context.Context) error { return sameRoles(ctx, s, want) })
	}
	delete(want, "of-the-system")
	m.eventually("zone-2 to have the producers, and nothing else",
		func(ctx context.Context) error { return sameRoles(ctx, two, want) })
	// A later change has arrived: nothing else is under way.
	m.apply(one, systemPolicy("shop", "later"))
	want["later"] = "producer"
	m.eventually("zone-2 to have a later producer", func(ctx context.Context) error { return sameRoles(ctx, two, want) })
}

// TestSystemPolicyIsExplainedAlike checks that what a zone's operator allowed for the whole zone, in a custom system
// namespace, is allowed in both the zone's and the global's explanation.
func TestSystemPolicyIsExplainedAlike(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	zone := m.startZoneWith("zone-1", "--system-namespace", "mesh-one")
	m.apply(zone, `
type: Dataplane
mesh: default
namespace: shop
name: till
networking: {address: 127.0.0.1, inbound: [{port: 8080, tags: {kuma.io/service: till, kuma.io/protocol: http}}]}
---
type: MeshTrafficPermission
mesh: default
namespace: mesh-one
name: by-the-operator
spec: {default: {allow: [{spiffeId: {type: Exact, value: "spiffe://a/frontend"}}]}}
`)
	for _, s := range []*cluster.Server{zone, m.global} {
		m.eventually(s.Name()+" to say that it is allowed", func(ctx context.Context) error {
			out, err := m.CTL(ctx, s, nil, "explain", "--to", "till", "--namespace", "shop", "--from", "spiffe://a/frontend")
			if err == nil && !strings.Contains(string(out), "by-the-operator") {
				err = fmt.Errorf("it says %s", out)
			}
			return err
		})
	}
}

func sameRoles(ctx context.Context, s *cluster.Server, want map[string]string) error {
	roles, err := rolesOf(ctx, s)
	for name, role := range want {
		if err == nil && roles[name] != role {
			err = fmt.Errorf("%s is %q, want %s", name, roles[name], role)
		}
	}
	if err == nil && len(roles) != len(want) {
		err = cluster.Final(fmt.Errorf("it has %v, want %v", roles, want))
	}
	return err
}

// TestGlobalOfAnotherNamespace has the operator of a global write in its system namespace, as everybody does with a
// global in Kubernetes, and zones whose system namespaces have other names: Envoys of both enforce it, and the owner of a
// namespace of that name gains nothing.
func TestGlobalOfAnotherNamespace(t *testing.T) {
	t.Parallel()
	m := startMesh(t, cluster.GlobalConfig{Args: []string{"--system-namespace", "causeway-system"}})
	one := m.startZone("zone-1")
	two := m.startZoneWith("zone-2", "--system-namespace", "mesh-two")
	http := cluster.InboundConfig{Name: "http", Protocol: cluster.ProtocolHTTP}
	const permission = `{type: MeshTrafficPermission, mesh: default, namespace: %s, name: %s, spec: {default: {%s: [{spiffeId: {type: Prefix, value: "spiffe://default.zone-1.mesh.local/"}}]}}}`
	m.apply(m.global, fmt.Sprintf(permission, "causeway-system", "of-operator", "allow"))
	client, _ := m.client(one, "client")
	for _, zone := range []*cluster.Server{one, two} {
		m.apply(zone, fmt.Sprintf(permission, "causeway-system", "of-namespace", "deny")) // of nobody here
		backend := m.workload(zone, http)
		m.eventually(zone.Name()+" to let the client in", func(ctx context.Context) error {
			got, err := backend.Judge(ctx, client, "http", "/")
			if err == nil && (!got.Allowed() || got.DecidedBy != "kri_mtp_default__causeway-system_of-operator_") {
				err = fmt.Errorf("it is %s", got)
			}
			return err
		})
	}
}
