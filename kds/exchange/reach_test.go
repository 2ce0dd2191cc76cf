package exchange

import (
	"slices"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// TestReach has a row for each way of seed 004, "Namespace-scoped policies and multizone", written at its home.
func TestReach(t *testing.T) {
	t.Parallel()
	const (
		own   = `{"to":[{"targetRef":{"kind":"MeshService","name":"b"},"default":{}}]}`
		other = `{"to":[{"targetRef":{"kind":"MeshService","name":"b","namespace":"other"},"default":{}}]}`
	)
	for name, c := range map[string]struct {
		zone, namespace string
		typ             resources.Type
		labels          map[string]string
		spec            string
		want            []string
	}{
		"a producer": {"zone-1", "team", resources.TypeMeshTimeout, nil, own,
			[]string{"global", "zone-2", "zone-3"}},
		"a producer for one zone": {"zone-1", "team", resources.TypeMeshTimeout, nil,
			`{"targetRef":{"kind":"MeshSubset","tags":{"kuma.io/zone":"zone-3"}},` + own[1:], []string{"global", "zone-3"}},
		"a producer for its own zone": {"zone-1", "team", resources.TypeMeshTimeout, nil,
			`{"targetRef":{"kind":"Dataplane","labels":{"kuma.io/zone":"zone-1"}},` + own[1:], []string{"global"}},
		"a producer's route": {"zone-1", "team", resources.TypeMeshHTTPRoute, nil,
			`{"to":[{"targetRef":{"kind":"MeshService","name":"b"}}]}`, []string{"global", "zone-2", "zone-3"}},
		"a consumer": {"zone-1", "team", resources.TypeMeshTimeout, nil, other, []string{"global"}},
		"a workload owner": {"zone-1", "team", resources.TypeMeshTrafficPermission, nil,
			`{"default":{}}`, []string{"global"}},
		"a policy on an external service": {"zone-1", "team", resources.TypeMeshTimeout, nil,
			`{"to":[{"targetRef":{"kind":"MeshExternalService","name":"b"},"default":{}}]}`, []string{"global"}},
		"a system policy of a zone": {"zone-1", "kuma-system", resources.TypeMeshTimeout, nil, own,
			[]string{"global"}},
		"a zone's policy without a namespace": {"zone-1", "", resources.TypeMeshTimeout, nil, own, []string{"global"}},
		"a policy that stays at home": {"zone-1", "team", resources.TypeMeshTimeout,
			map[string]string{resources.LabelSync: resources.SyncDisabled}, own, []string{}},
		"a service": {"zone-1", "team", resources.TypeMeshService, nil, `{}`,
			[]string{"global", "zone-2", "zone-3"}},
		"a proxy": {"zone-1", "team", resources.TypeDataplane, nil, `{}`, []string{"global"}},
		"a zone's external service": {"zone-1", "", resources.TypeMeshExternalService, nil, `{}`,
			[]string{"global"}},
		"the global's policy": {"", "", resources.TypeMeshTrafficPermission, nil, `{"default":{}}`,
			[]string{"zone-1", "zone-2", "zone-3"}},
		"the global's mesh": {"", "", resources.TypeMesh, nil, `{}`,
			[]string{"zone-1", "zone-2", "zone-3"}},
		"the global's zone": {"", "", resources.TypeZone, nil, `{}`, []string{}},
		"a policy that stays on the global": {"", "", resources.TypeMeshTimeout,
			map[string]string{resources.LabelSync: resources.SyncDisabled}, own, []string{}},
		"the global's policy for one zone too": {"", "", resources.TypeMeshTimeout, nil,
			`{"targetRef":{"kind":"MeshSubset","tags":{"kuma.io/zone":"zone-3"}},` + own[1:],
			[]string{"zone-1", "zone-2", "zone-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec, err := resources.NewSpec(c.typ, []byte(c.spec))
			if err != nil {
				t.Fatal(err)
			}
			r := &resources.Resource{Key: resources.Key{Type: c.typ, Mesh: "default", Namespace: c.namespace,
				Name: "r"}, Labels: c.labels, Spec: spec}
			if r.Descriptor().Scope == resources.ScopeGlobal {
				r.Mesh = ""
			}
			stored := resources.Home{Zone: c.zone}.Labelled(r)
			here := Vantage{Zone: c.zone, Zones: []string{"zone-3", "zone-1", "zone-off", "zone-2", "zone-3"},
				Enabled: func(zone string) bool { return zone != "zone-off" }}
			if got := NewFilter().Reach(stored, here); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
