package xds

import (
	"bytes"
	"slices"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestTrafficTargetsAreFollowed: a TrafficTarget, and what it refers to, reaches the proxy of its service account in
// whatever order they come and change; the other proxy is left alone.
func TestTrafficTargetsAreFollowed(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	x := testProxies(s)
	apply := func(ops ...store.Op) {
		t.Helper()
		if _, err := s.Apply(t.Context(), store.Batch{Ops: ops}); err != nil {
			t.Fatal(err)
		}
		x.catchUp()
	}
	key := func(typ resources.Type, name string) resources.Key {
		return resources.Key{Type: typ, Mesh: "default", Name: name}
	}
	target, group, trust := key(resources.TypeTrafficTarget, "t"), key(resources.TypeHTTPRouteGroup, "g"),
		key(resources.TypeMeshTrust, "zone-2")
	networking := map[string]any{"networking": map[string]any{"address": "127.0.0.1", "inbound": []any{
		map[string]any{"name": "main", "port": 1, "servicePort": 3, "protocol": "http"}}}}
	for _, name := range []string{"a", "b"} {
		dp := testResource(dataplaneKey(name), map[string]string{resources.LabelServiceAccount: name,
			resources.LabelNamespace: "ns"}, networking)
		apply(store.Op{Put: dp})
	}
	a, b := connect(x, "a"), connect(x, "b")
	before := b.proxy.state.Load()
	path := func(expression string) *resources.Resource {
		return testResource(group, nil,
			map[string]any{"matches": []any{map[string]any{"name": "m", "pathRegex": expression}}})
	}
	traffic := testResource(target, nil, map[string]any{
		"destination": map[string]any{"kind": "ServiceAccount", "name": "a", "namespace": "ns"},
		"sources":     []any{map[string]any{"kind": "ServiceAccount", "name": "c", "namespace": "ns"}},
		"rules":       []any{map[string]any{"kind": "HTTPRouteGroup", "name": "g"}},
	})
	ofGlobal := func(r *resources.Resource) *resources.Resource {
		r = r.Clone()
		r.Labels[resources.LabelOrigin] = resources.OriginGlobal
		delete(r.Labels, resources.LabelZone)
		return r
	}

	for _, step := range []struct {
		name    string
		op      store.Op
		has     []string
		without []string
	}{
		{"the target alone", store.Op{Put: traffic}, nil, []string{"kri_tt_"}},
		{"its group comes", store.Op{Put: path("/one")},
			[]string{"kri_tt_default_zone-1__t_", "/one", "spiffe://default.zone-1.mesh.local/ns/ns/sa/c"}, nil},
		{"its group changes", store.Op{Put: path("/two")}, []string{"/two"}, []string{"/one"}},
		{"it is the global's, which does not know the zone's group", store.Op{Put: ofGlobal(traffic)}, nil,
			[]string{"kri_tt_"}},
		{"the global's group comes, but nobody is trusted", store.Op{Put: ofGlobal(path("/two"))}, nil, []string{"kri_tt_"}},
		{"a trust comes", store.Op{Put: testResource(trust, nil, map[string]any{"trustDomain": "default.zone-2.mesh.local"})},
			[]string{"kri_tt_default___t_", "spiffe://default.zone-2.mesh.local/ns/ns/sa/c"},
			[]string{"default.zone-1.mesh.local"}},
		{"the target goes", store.Op{Delete: target}, nil, []string{"kri_tt_"}},
	} {
		apply(step.op)
		config := filtersOf(a)
		for _, part := range step.has {
			if !bytes.Contains(config, []byte(part)) {
				t.Errorf("%s: %s is not in the filters", step.name, part)
			}
		}
		for _, part := range step.without {
			if bytes.Contains(config, []byte(part)) {
				t.Errorf("%s: %s is in the filters", step.name, part)
			}
		}
		if b.proxy.state.Load() != before {
			t.Errorf("%s: the other proxy was built anew", step.name)
		}
	}
	a.end()
	b.end()
}

// filtersOf are the bytes of the permission filters that a proxy has.
func filtersOf(s *session) []byte {
	var all [][]byte
	for _, r := range s.proxy.state.Load().sets[kindExtension] {
		all = append(all, r.delta.GetResource().GetValue())
	}
	return slices.Concat(all...)
}
