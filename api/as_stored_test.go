package api_test

import (
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestWarningsAreAboutWhatIsStored: those that warn of a resource that was written get it as those that follow the store do,
// so that what both read of it is read once.
func TestWarningsAreAboutWhatIsStored(t *testing.T) {
	stored := map[string]bool{}
	f := serve(t, resources.Home{Zone: "zone-1", Alone: true}, func(s *api.Server) {
		s.AddWarnings(func(after store.Snapshot, r *resources.Resource, _ *api.Reader) []string {
			stored[r.Name] = after.Get(r.Key) == r
			return nil
		})
	})
	f.mustCall(t, "PUT", "/meshes/default/meshtrafficpermissions/one", permission("one"))
	f.mustCall(t, "POST", "/_batch", "type: Mesh\nname: other\n---\n"+permission("one")+"---\n"+permission("two")+"---\n"+
		strings.Replace(permission("three"), "mesh: default\n", "mesh: other\n", 1))
	for _, name := range []string{"one", "two", "three"} {
		if is, asked := stored[name]; name != "one" && !is || !asked {
			t.Errorf("%s: warned of something other than what is stored", name)
		}
	}
	f.mustCall(t, "PUT", "/meshes/default/meshtrafficpermissions/one", strings.Replace(permission("one"), "ns/'", "ns/x/'", 1))
	if !stored["one"] {
		t.Error("a change: warned of something other than what is stored")
	}
}
