package kubernetes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
)

// TestLabelsThatChangedUnseen changes the labels of an object while nothing is watched, and then writes its status: the
// answer has the version that the next list has, and the labels of that version are news.
func TestLabelsThatChangedUnseen(t *testing.T) {
	moved := permission("u", 1, map[string]string{"kuma.io/mesh": "second"}, true)
	g := newRigWith(t, connectedTo(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			_, _ = w.Write(moved.Raw)
			return
		}
		fmt.Fprint(w, `{"metadata": {"name": "a-definition", "creationTimestamp": "2020-01-01T00:00:00Z"}}`)
	}))
	g.secondMesh()
	g.list(permission("u", 1, nil, true))
	g.reportOne(t.Context(), objectID{resources.TypeMeshTrafficPermission, web})
	if len(g.kinds[resources.TypeMeshTrafficPermission].objects[web].conditions) == 0 {
		t.Fatal("no status was written")
	}
	g.sink().Replace([]*apiserver.Object{moved})
	g.settled()
	g.holds("second shop/web u/1")
}

// TestLabelsThatNobodyJudged moves an object to another mesh while the store takes nothing: what is known of it with its
// old labels is not said of it with the new ones.
func TestLabelsThatNobodyJudged(t *testing.T) {
	g := newRig(t)
	g.secondMesh()
	disk := &failing{Memory: g.store}
	g.Routes = api.New(api.Config{Store: disk, Home: g.Home})
	g.list(permission("u", 1, nil, true))
	said := func(when, want string) {
		t.Helper()
		for _, c := range g.saysOf(web) {
			if c.Type == resources.ConditionReady && c.Status != want || c.Type == resources.ConditionAccepted && c.Status != want {
				t.Errorf("%s: %s is %s: %s", when, c.Type, c.Status, c.Message)
			}
		}
	}
	disk.full = true
	id := objectID{resources.TypeMeshTrafficPermission, web}
	delete(g.due, id)
	g.sink().Changed(permission("u", 1, map[string]string{"kuma.io/mesh": "second"}, true))
	g.settled()
	said("while the disk is full", resources.ConditionUnknown)
	if _, ok := g.due[id]; !ok {
		t.Error("nobody is told")
	}
	disk.full = false
	g.settled()
	g.holds("second shop/web u/1")
	if got := g.accepted(web); !strings.HasPrefix(got, "True") {
		t.Errorf("Accepted is %s", got)
	}
	// What the server does not read changes nothing.
	disk.full = true
	same := permission("u", 1, map[string]string{"kuma.io/mesh": "second"}, true)
	same.Meta.ResourceVersion = "annotated"
	g.sink().Changed(same)
	g.settled()
	if got := g.accepted(web); !strings.HasPrefix(got, "True") {
		t.Errorf("after an annotation, Accepted is %s", got)
	}
}

// saysOf returns what the status of a permission is to say, without its rollout.
func (g *rig) saysOf(name apiserver.Name) []resources.Condition {
	o := g.kinds[resources.TypeMeshTrafficPermission].objects[name]
	n := conditionInputs{refused: o.refused, unjudged: o.unjudged, generation: o.generation, stored: g.store.Snapshot().Get(o.key)}
	return n.conditions()
}

// TestWhatOthersWriteIntoAStatus changes the generation that a status is about, as whoever may write the status can: the
// server puts it right, once.
func TestWhatOthersWriteIntoAStatus(t *testing.T) {
	writes := 0
	g := newRigWith(t, connectedTo(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			writes++
			_, _ = w.Write(permission("u", 1, nil, true).Raw)
			return
		}
		fmt.Fprint(w, `{"metadata": {"name": "a-definition", "creationTimestamp": "2020-01-01T00:00:00Z"}}`)
	}))
	g.list(permission("u", 1, nil, true))
	id := objectID{resources.TypeMeshTrafficPermission, web}
	wrote := func(when string, want int) {
		t.Helper()
		g.reportOne(t.Context(), id)
		g.reportOne(t.Context(), id)
		if writes != want {
			t.Fatalf("%s: %d writes, want %d", when, writes, want)
		}
	}
	wrote("at first", 1)
	var document map[string]any
	must(t, json.Unmarshal(permission("u", 1, nil, true).Raw, &document))
	document["metadata"].(map[string]any)["resourceVersion"] = "changed"
	document["status"] = map[string]any{"observedGeneration": 7, "conditions": g.kinds[id.Type].objects[web].conditions}
	raw, err := json.Marshal(document)
	must(t, err)
	changed, err := apiserver.Parse(raw)
	must(t, err)
	g.sink().Changed(changed)
	g.settled()
	wrote("after a change", 2)
}

// TestLabelsOfKuma lists objects that Kuma's control plane labelled before this server was there: what says the same of
// them as this server does is taken, and what calls them another's is not.
func TestLabelsOfKuma(t *testing.T) {
	for want, labels := range map[string]map[string]string{
		"True": {"kuma.io/env": "kubernetes", "kuma.io/mesh": "default", "kuma.io/origin": "zone", "kuma.io/zone": "zone-1",
			"kuma.io/policy-role": "workload-owner", "k8s.kuma.io/namespace": "shop"},
		"False": {"kuma.io/env": "kubernetes", "kuma.io/origin": "global"},
	} {
		g := newRig(t)
		object := permission("u", 1, labels, true)
		g.list(object)
		if got := g.accepted(web); !strings.HasPrefix(got, want) {
			t.Errorf("of %v, Accepted is %s", labels, got)
		}
		if answer := g.judge(t.Context(), asked(operationCreate, object.Raw, nil), true); answer.Allowed != (want == "True") {
			t.Errorf("of %v, the webhook says %+v", labels, answer.Status)
		}
	}
}
