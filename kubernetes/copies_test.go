package kubernetes

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// synced stores a permission that another server wrote, as a global passes it on, with labels of its author's choice.
func (g *rig) synced(name string, labels map[string]string) {
	g.t.Helper()
	docs, err := resources.DecodeDocuments([]byte(`{"type": "MeshTrafficPermission", "mesh": "default", "name": "`+name+`", "spec": {"default": {"deny": [{"spiffeId": {"type": "Exact", "value": "spiffe://a/b"}}]}}}`),
		resources.DecodeOptions{})
	must(g.t, err)
	r := docs[0]
	r.Namespace, r.Labels = resources.DefaultSystemNamespace, labels
	_, err = g.store.Apply(g.t.Context(), store.Batch{Ops: []store.Op{{Put: r}}})
	must(g.t, err)
}

// TestObjectInThePlaceOfAnOriginal writes an object under the name of what the global wrote. It is refused, and keeps
// nothing else away.
func TestObjectInThePlaceOfAnOriginal(t *testing.T) {
	g := newRig(t)
	g.synced("web", map[string]string{resources.LabelOrigin: "global", resources.LabelDisplayName: "web"})
	g.list(permissionIn(resources.DefaultSystemNamespace, "u", 1, nil, true), permission("v", 1, nil, true))
	g.holds("default "+resources.DefaultSystemNamespace+"/web /0", "default shop/web v/1")
	if got := g.accepted(apiserver.Name{Namespace: resources.DefaultSystemNamespace, Name: "web"}); !strings.HasPrefix(got, "False") {
		t.Errorf("Accepted is %s", got)
	}
	g.sink().Deleted(permissionIn(resources.DefaultSystemNamespace, "u", 1, nil, true))
	g.settled()
	g.holds("default "+resources.DefaultSystemNamespace+"/web /0", "default shop/web v/1")
}

// TestCopiesOfHostileOriginals shows a resource whose author chose its labels: it is a copy in its place, and it carries
// nothing that another program obeys.
func TestCopiesOfHostileOriginals(t *testing.T) {
	g := newRig(t)
	g.synced("web-abc", map[string]string{resources.LabelOrigin: "global", resources.LabelZone: "evil", LabelCopy: "no",
		"argocd.argoproj.io/instance": "prod", "app.kubernetes.io/managed-by": "Helm", "not a label!": "x", "team": "evil", "causeway.io/content": "no label's value"})
	g.list()
	s := g.shownAs(objectID{resources.TypeMeshTrafficPermission, apiserver.Name{Namespace: resources.DefaultSystemNamespace, Name: "web-abc"}})
	if s == nil {
		t.Fatal("it is not shown")
	}
	var o struct{ Metadata map[string]any }
	must(t, json.Unmarshal(s.document, &o))
	for field, value := range o.Metadata {
		switch field {
		case "name", "namespace":
		case "annotations":
			if m := value.(map[string]any); len(m) != 1 || m[annotationContent] != s.content {
				t.Errorf("annotations: %v", m)
			}
		case "labels":
			labels := value.(map[string]any)
			if labels[LabelCopy] != copied {
				t.Errorf("it is no copy: %v", labels)
			}
			if len(labels) != 5 || labels["team"] != "evil" || labels[resources.LabelZone] != "evil" {
				t.Errorf("labels: %v", labels)
			}
		default:
			t.Errorf("%s: %v", field, value)
		}
	}
}
