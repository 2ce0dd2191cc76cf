package api

import (
	"slices"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestDefaultGenerators checks that a new server creates the generators for its own services once: those that a user
// changed or removed are not created again while one of the server's own exists.
func TestDefaultGenerators(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		home resources.Home
		want []string
	}{
		"zone": {resources.Home{Zone: "zone-1"}, []string{"local-mesh-external-service", "local-namespaced-mesh-service", "local-universal-mesh-service"}},
		"alone": {resources.Home{Zone: "zone-1", Alone: true}, []string{"local-mesh-external-service", "local-namespaced-mesh-service", "local-universal-mesh-service",
			"synced-mesh-multi-zone-service"}},
		"global": {resources.Home{}, []string{"synced-headless-kube-mesh-service", "synced-kube-mesh-service", "synced-mesh-external-service",
			"synced-mesh-multi-zone-service", "synced-namespaced-mesh-service", "synced-universal-mesh-service"}},
	} {
		s := store.NewMemory()
		names := func() (out []string) {
			for r := range s.Snapshot().List(store.Query{Type: resources.TypeHostnameGenerator}) {
				if err := resources.Validate(r, c.home); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if !c.home.Owns(r) {
					t.Errorf("%s: %s is not the server's own", name, r.Name)
				}
				out = append(out, r.Name)
			}
			slices.Sort(out)
			return out
		}
		ensure := func() {
			t.Helper()
			if err := EnsureDefaults(t.Context(), s, c.home); err != nil {
				t.Fatal(name, err)
			}
		}
		ensure()
		if got := names(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		before := s.Snapshot().Revision()
		ensure()
		if after := s.Snapshot().Revision(); after != before {
			t.Errorf("%s: written again", name)
		}
		for _, one := range c.want[1:] {
			if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Delete: resources.Key{Type: resources.TypeHostnameGenerator, Name: one}}}}); err != nil {
				t.Fatal(err)
			}
		}
		ensure()
		if got := names(); !slices.Equal(got, c.want[:1]) {
			t.Errorf("%s: what was removed is made again: %v", name, got)
		}
	}
}
