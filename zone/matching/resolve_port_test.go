package matching_test

import (
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// TestResolvePort: a reference without a port means the service's only port, or the suggested one.
func TestResolvePort(t *testing.T) {
	ports := func(all ...any) map[string]any { return map[string]any{"ports": all} }
	c := resourceCase{
		Proxy: &document{Name: "dp", Zone: "zone-1", Namespace: "ns-a"},
		Resources: []document{
			{Type: "MeshService", Name: "one", Zone: "zone-1", Namespace: "ns-a",
				Spec: ports(map[string]any{"name": "http", "port": 80})},
			{Type: "MeshService", Name: "unnamed", Zone: "zone-1", Namespace: "ns-a", Spec: ports(map[string]any{"port": 80})},
			{Type: "MeshService", Name: "none", Zone: "zone-1", Namespace: "ns-a", Spec: ports()},
			{Type: "MeshService", Name: "two", Zone: "zone-1", Namespace: "ns-a", Spec: sections},
			{Type: "MeshExternalService", Name: "bank", Zone: "zone-1",
				Spec: map[string]any{"match": map[string]any{"port": 443}}},
			{Type: "MeshExternalService", Name: "shop", Zone: "zone-1",
				Spec: map[string]any{"match": map[string]any{"port": 443},
					"endpoints": []any{map[string]any{"address": "192.0.2.1", "port": 443}}}},
		},
	}
	w := c.world(t)
	for _, test := range []struct {
		kind, name, section string
		port                uint32
		want, problem       string
	}{
		{"MeshService", "one", "", 0, "http", ""},
		{"MeshService", "one", "other", 0, "http", ""},
		{"MeshService", "one", "", 81, "", "has no port 81"},
		{"MeshService", "unnamed", "", 0, "80", ""},
		{"MeshService", "none", "", 0, "", "has 0 ports: name one"},
		{"MeshService", "two", "", 0, "", "has 2 ports: name one"},
		{"MeshService", "two", "other", 0, "", "has 2 ports: name one"},
		{"MeshService", "two", "80", 0, "http", ""},
		{"MeshService", "two", "http", 81, "81", ""},
		{"MeshService", "nobody", "", 0, "", "resolves to nothing"},
		{"MeshExternalService", "bank", "", 0, "", "is not dialled: has no endpoints"},
		{"MeshExternalService", "bank", "", 443, "", "is not dialled: has no endpoints"},
		{"MeshExternalService", "shop", "", 0, "443", ""},
		{"MeshExternalService", "shop", "", 443, "443", ""},
		{"MeshExternalService", "shop", "", 80, "", "has no port 80"},
	} {
		ref := resources.BackendRef{TargetRef: resources.TargetRef{Kind: test.kind, Name: test.name}, Port: test.port}
		target, problem := w.destinations.ResolvePort(w.proxy.Referrer(), &ref, test.section)
		if target.Section != test.want || (target.Destination == nil) != (problem != "") ||
			(problem == "") != (test.problem == "") || !strings.Contains(problem, test.problem) {
			t.Errorf("%+v: got %q, %q", test, target.Section, problem)
		}
	}
}
