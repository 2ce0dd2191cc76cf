package kds

import (
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestReferencesNameWhereCopiesLive: a resolved reference has the system namespace of the server that holds the policy.
// Copies of a server that set none, or had another system namespace, are sent again when a session begins.
func TestReferencesNameWhereCopiesLive(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.SystemNamespace = "global-system" })
	s1, s2 := store.NewMemory(), store.NewMemory()
	system := func(c *ZoneConfig) { c.SystemNamespace = "zone-system" }
	first := startZone(t, "zone-1", g.address, s1)
	second := startZone(t, "zone-2", g.address, s2, system)
	put(t, s1, written(t, zoneHome("zone-1"), resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default",
		Namespace: "backend-ns", Name: "producer-timeout"}, `{"to":[{"targetRef":{"kind":"MeshService","name":"backend"},"default":{"idleTimeout":"1s"}}]}`))
	names := func(s store.Reader, namespace string) func() bool {
		return func() bool {
			r := find(s, resources.TypeMeshTimeout, "producer-timeout")
			return r != nil && contains(r, `"namespace":"`+namespace+`"`) && contains(r, `"name":"backend-`)
		}
	}
	check := func() {
		t.Helper()
		eventually(t, "the reference on the global", names(g.store, "global-system"))
		eventually(t, "the reference in the other zone", names(s2, "zone-system"))
	}
	check()
	before := map[store.Store]string{}
	first.stop()
	second.stop()
	for s, namespace := range map[store.Store]string{g.store: "global-system", s2: "zone-system"} {
		r := find(s, resources.TypeMeshTimeout, "producer-timeout").Clone()
		before[s] = string(r.Spec.JSON())
		spec, err := resources.NewSpec(r.Type, []byte(strings.Replace(before[s], `,"namespace":"`+namespace+`"`, "", 1)))
		if err != nil || spec.Equal(r.Spec) {
			t.Fatalf("%v: %s", err, spec.JSON())
		}
		r.Spec = spec
		put(t, s, r)
	}
	startZone(t, "zone-1", g.address, s1)
	startZone(t, "zone-2", g.address, s2, system)
	check()
	for s, want := range before {
		if got := find(s, resources.TypeMeshTimeout, "producer-timeout"); string(got.Spec.JSON()) != want {
			t.Errorf("got %s, want %s", got.Spec.JSON(), want)
		}
	}
}
