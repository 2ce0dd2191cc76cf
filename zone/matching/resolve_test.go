package matching_test

import (
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// TestResolveBackend resolves references of a proxy's outbounds, which have no namespace.
func TestResolveBackend(t *testing.T) {
	c := resourceCase{
		Proxy: &document{Name: "dp", Zone: "zone-1", Namespace: "ns-a"},
		Resources: []document{
			{Type: "MeshService", Name: "own", Zone: "zone-1", Namespace: "ns-a", Spec: sections},
			{Type: "MeshService", Name: "own", Zone: "zone-1", Namespace: "ns-b", Spec: sections},
			{Type: "MeshService", Name: "other", Zone: "zone-1", Namespace: "ns-b",
				Labels: map[string]string{"app": "x"}, Spec: sections},
			{Type: "MeshService", Name: "both", Zone: "zone-1", Namespace: "ns-b",
				Labels: map[string]string{"app": "x"}, Spec: sections},
			{Type: "MeshService", Name: "both", Zone: "zone-1", Namespace: "ns-c", Spec: sections},
			{Type: "MeshService", Name: "far", Zone: "zone-2", Namespace: "ns-b", Copy: true,
				Labels: map[string]string{"far": "yes"}, Spec: sections},
		},
	}
	w := c.world(t)
	named := func(name string) resources.TargetRef {
		return resources.TargetRef{Kind: resources.KindMeshService, Name: string(hashNames([]byte(name)))}
	}
	labelled := func(key, value string) resources.TargetRef {
		return resources.TargetRef{Kind: resources.KindMeshService, Labels: map[string]string{key: value}}
	}
	tests := []struct {
		ref           resources.BackendRef
		want, problem string
	}{
		{resources.BackendRef{TargetRef: named("own"), Port: 80}, "MeshService default/ns-a/own#http", ""},
		{resources.BackendRef{TargetRef: named("own"), Port: 81}, "MeshService default/ns-a/own#81", ""},
		{resources.BackendRef{TargetRef: named("other")}, "MeshService default/ns-b/other", ""},
		{resources.BackendRef{TargetRef: named("other"), Port: 82}, "", "has no port 82"},
		{resources.BackendRef{TargetRef: named("both")}, "", "more than one thing"},
		{resources.BackendRef{TargetRef: named("far")}, "", "resolves to nothing"},
		{resources.BackendRef{TargetRef: named("HASH(default far zone-2 ns-b)")},
			string(hashNames([]byte("MeshService default/HASH(default far zone-2 ns-b)"))), ""},
		{resources.BackendRef{TargetRef: labelled("far", "yes"), Port: 80},
			string(hashNames([]byte("MeshService default/HASH(default far zone-2 ns-b)#http"))), ""},
		{resources.BackendRef{TargetRef: labelled("app", "x")}, "", "more than one thing"},
		{resources.BackendRef{TargetRef: resources.TargetRef{}}, "", "Mesh is not a service or a route"},
	}
	for _, test := range tests {
		target, problem := w.destinations.ResolveBackend(w.proxy.Referrer(), &test.ref)
		got := ""
		if target != (matching.Target{}) {
			got = target.Key().String()
		}
		if got != test.want || (problem == "") != (test.problem == "") || !strings.Contains(problem, test.problem) {
			t.Errorf("%+v: want %q, %q, got %q, %q", test.ref, test.want, test.problem, got, problem)
		}
	}
}

// TestReferencesOfTheGlobal resolves references of a policy that the global's operator wrote in the global's system
// namespace, in a zone with a namespace of that name, which is somebody else's.
func TestReferencesOfTheGlobal(t *testing.T) {
	outside := map[string]any{"match": map[string]any{"port": 443}, "endpoints": []any{map[string]any{"address": "example.com", "port": 443}}}
	c := resourceCase{Resources: []document{
		{Type: "MeshService", Name: "backend", Zone: "zone-1", Namespace: "causeway-system", Spec: sections},
		{Type: "MeshService", Name: "backend", Zone: "zone-1", Spec: sections},
		{Type: "MeshService", Name: "far", Zone: "zone-2", Namespace: "shop", Copy: true, Spec: sections},
		{Type: "MeshExternalService", Name: "outside", Namespace: "causeway-system", Copy: true, Spec: outside},
		{Type: "MeshTimeout", Name: "of-global", Namespace: "causeway-system", Copy: true, Spec: map[string]any{}},
		{Type: "MeshTimeout", Name: "of-zone", Zone: "zone-1", Namespace: "kuma-system", Spec: map[string]any{}},
		{Type: "MeshTimeout", Name: "of-owner", Zone: "zone-1", Namespace: "causeway-system", Spec: map[string]any{}},
	}}
	w := c.world(t)
	hashed := func(text string) string { return string(hashNames([]byte(text))) }
	external := hashed("MeshExternalService default/HASH(default outside causeway-system)")
	for _, test := range []struct {
		policy int
		ref    resources.TargetRef
		want   string
	}{
		// Without a namespace: the operator's, not that of the namespace with the name of the global's.
		{0, resources.TargetRef{Kind: "MeshService", Name: "backend"}, "MeshService default/backend"},
		{0, resources.TargetRef{Kind: "MeshExternalService", Name: "outside"}, external},
		// The global's system namespace is where copies live, by any of their names.
		{0, resources.TargetRef{Kind: "MeshExternalService", Name: "outside", Namespace: "causeway-system"}, external},
		{0, resources.TargetRef{Kind: "MeshService", Name: hashed("HASH(default far zone-2 shop)"), Namespace: "causeway-system"},
			hashed("MeshService default/HASH(default far zone-2 shop)")},
		// So is the zone's for its own users.
		{1, resources.TargetRef{Kind: "MeshExternalService", Name: "outside", Namespace: "kuma-system"}, external},
		{2, resources.TargetRef{Kind: "MeshExternalService", Name: "outside"}, external},
		// What a namespace of that name has in a zone means nothing more.
		{2, resources.TargetRef{Kind: "MeshService", Name: hashed("HASH(default far zone-2 shop)"), Namespace: "causeway-system"}, ""},
		{2, resources.TargetRef{Kind: "MeshService", Name: "backend"}, "MeshService default/causeway-system/backend"},
	} {
		targets, problem := w.destinations.Resolve(w.policies[test.policy].Referrer(), &test.ref)
		got := ""
		if len(targets) == 1 {
			got = targets[0].Key().String()
		}
		if got != test.want || len(targets) > 1 {
			t.Errorf("%s, %+v: want %q, got %q (%s)", w.policies[test.policy].KRI, test.ref, test.want, got, problem)
		}
	}
}
