package kubernetes

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
)

// TestCopyDeletedBeforeItsAnswer deletes a copy before the answer to its creation arrives: it comes back, as any other
// that somebody deletes.
func TestCopyDeletedBeforeItsAnswer(t *testing.T) {
	var g *rig
	made := 0
	place := objectID{resources.TypeMeshTrafficPermission, apiserver.Name{Namespace: resources.DefaultSystemNamespace, Name: "web"}}
	g = newRigWith(t, connectedTo(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			fmt.Fprint(w, `{"metadata": {"name": "a-definition", "creationTimestamp": "2020-01-01T00:00:00Z"}}`)
			return
		}
		made++
		copied := permissionIn(place.Namespace, fmt.Sprint("copy-", made), 1, map[string]string{LabelCopy: copied}, true)
		if made == 1 { // the watch is faster than this answer
			g.sink().Changed(copied)
			for g.feedOnce(r.Context()) {
			}
			g.sink().Deleted(copied)
			for g.feedOnce(r.Context()) {
			}
		}
		_, _ = w.Write(copied.Raw)
	}))
	g.list()
	g.synced("web", map[string]string{resources.LabelOrigin: "global", resources.LabelDisplayName: "web"})
	g.projectAll()
	for range 3 {
		work := g.unprojected
		g.unprojected = map[objectID]bool{}
		for id := range work {
			if id == place {
				g.projectOne(t.Context(), id)
			}
		}
	}
	if made != 2 {
		t.Errorf("the copy was made %d times, and was deleted once", made)
	}
}
