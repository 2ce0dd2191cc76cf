package zone_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// TestEndpointsFollowReadiness: an endpoint that is not ready gets no requests, and adding and removing endpoints moves
// no cluster.
func TestEndpointsFollowReadiness(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.handler("a", "backend", answers("a"))
	w.handler("b", "backend", answers("b"))
	w.allowAll()
	ports, e := w.caller("caller", "{kind: MeshService, name: backend}")
	seen := func() string {
		var got []string
		for range 12 {
			_, body := plain(ports[0], "/")
			if name, _, _ := strings.Cut(body, " "); !strings.Contains(strings.Join(got, ""), name) {
				got = append(got, name)
			}
		}
		return strings.Join(got, "")
	}
	both := func() bool { s := seen(); return s == "ab" || s == "ba" }
	eventually(t, "both", both)
	const moved = "cluster_manager.cluster_(added|modified)"
	before := fmt.Sprint(e.counted(moved))
	b := w.store.Snapshot().Get(resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: "b"})
	spec, err := resources.NewSpec(resources.TypeDataplane,
		[]byte(strings.Replace(string(b.Spec.JSON()), `"name":"main"`, `"name":"main","state":"NotReady"`, 1)))
	must(t, err)
	next := b.Clone()
	next.Spec = spec
	w.put(next)
	eventually(t, "only the ready one", func() bool { return seen() == "a" })
	w.put(b)
	eventually(t, "both again", both)
	w.remove(resources.TypeDataplane, "b")
	eventually(t, "only the one that is left", func() bool { return seen() == "a" })
	if after := fmt.Sprint(e.counted(moved)); after != before {
		t.Errorf("endpoints moved clusters: %s, then %s", before, after)
	}
	e.refusedNothing()
}
