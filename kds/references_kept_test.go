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
	above, s1, s2 := store.NewMemory(), store.NewMemory(), store.NewMemory()
	upper, stopUpper := remembering(t, t.TempDir(), above)
	lower, stopLower := remembering(t, t.TempDir(), s2)
	defer stopUpper()
	defer stopLower()
	g := startGlobal(t, above, func(c *GlobalConfig) { c.SystemNamespace, c.Versions = "global-system", upper })
	system := func(c *ZoneConfig) { c.SystemNamespace, c.Versions = "zone-system", lower }
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
	for s, known := range map[store.Store]*CopyVersions{g.store: upper.of("zone-1"), s2: lower.of("global")} {
		namespace := map[bool]string{true: "global-system", false: "zone-system"}[s == g.store]
		r := find(s, resources.TypeMeshTimeout, "producer-timeout").Clone()
		before[s] = string(r.Spec.JSON())
		spec, err := resources.NewSpec(r.Type, []byte(strings.Replace(before[s], `,"namespace":"`+namespace+`"`, "", 1)))
		if err != nil || spec.Equal(r.Spec) {
			t.Fatalf("%v: %s", err, spec.JSON())
		}
		r.Spec = spec
		known.update(r.Type, map[string]copyVersion{r.Name + ".default": {version: r.Version, key: r.Key, revision: put(t, s, r)}}, nil)
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
