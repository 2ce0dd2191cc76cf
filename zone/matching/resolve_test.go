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
