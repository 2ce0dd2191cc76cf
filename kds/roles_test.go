package kds

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestRoleChangeCrossesAtOnce: a policy that becomes a producer crosses, and one that stops being one is withdrawn, while the
// global has it all the time (seed 004, "Namespace-scoped policies and multizone").
func TestRoleChangeCrossesAtOnce(t *testing.T) {
	g := startGlobal(t, store.NewMemory())
	s1, s2 := store.NewMemory(), store.NewMemory()
	startZone(t, "zone-1", g.address, s1)
	startZone(t, "zone-2", g.address, s2)
	key := resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Namespace: "ns", Name: "p"}
	own := `{"targetRef":{"kind":"Mesh"},"to":[{"targetRef":{"kind":"MeshService","name":"b"},"default":{"idleTimeout":"%ds"}}]}`
	for i, step := range []struct {
		what, spec string
		role       resources.Role
		crosses    bool
	}{
		{"a consumer", `{"to":[{"targetRef":{"kind":"MeshService","name":"b","namespace":"other"},"default":{"idleTimeout":"%ds"}}]}`, resources.RoleConsumer, false},
		{"a producer", own, resources.RoleProducer, true},
		{"a workload owner", `{"rules":[{"default":{"idleTimeout":"%ds"}}]}`, resources.RoleWorkloadOwner, false},
		{"a producer again", own, resources.RoleProducer, true},
		{"a producer for another zone", `{"targetRef":{"kind":"MeshSubset","tags":{"kuma.io/zone":"zone-9"}},"to":[{"targetRef":{"kind":"MeshService","name":"b"},"default":{"idleTimeout":"%ds"}}]}`, resources.RoleProducer, false},
		{"a producer for this zone", `{"targetRef":{"kind":"MeshSubset","tags":{"kuma.io/zone":"zone-2"}},"to":[{"targetRef":{"kind":"MeshService","name":"b"},"default":{"idleTimeout":"%ds"}}]}`, resources.RoleProducer, true},
		{"a policy on an external service", `{"to":[{"targetRef":{"kind":"MeshExternalService","name":"b"},"default":{"idleTimeout":"%ds"}}]}`, resources.RoleConsumer, false},
	} {
		marker := fmt.Sprintf(`"idleTimeout":"%ds"`, i+1)
		put(t, s1, written(t, zoneHome("zone-1"), key, fmt.Sprintf(step.spec, i+1)))
		current := func(s store.Reader) bool {
			r := find(s, key.Type, key.Name)
			return r != nil && contains(r, marker) && r.Labels[resources.LabelPolicyRole] == string(step.role)
		}
		eventually(t, step.what+" on the global", func() bool { return current(g.store) })
		eventually(t, step.what+" in the other zone", func() bool {
			if step.crosses {
				return current(s2)
			}
			return find(s2, key.Type, key.Name) == nil
		})
	}
}

func contains(r *resources.Resource, text string) bool {
	return bytes.Contains(r.Spec.JSON(), []byte(text))
}
