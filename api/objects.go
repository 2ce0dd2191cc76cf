package api

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Objects reports which resources users write as objects of a Kubernetes cluster.
type Objects interface {
	// Are reports whether users write resources of the type as objects.
	Are(resources.Type) bool
	// Gone reports whether a resource's object is gone while the server keeps the resource.
	Gone(resources.Key) bool
}

// SetObjects makes the server refuse writes of resources that users write as objects of a cluster. Call it before the
// server serves.
func (s *Server) SetObjects(o Objects) { s.objects = o }

// writtenByKubectl refuses documents that users write as objects of a Kubernetes cluster.
func (s *Server) writtenByKubectl(docs []*resources.Resource) error {
	if s.objects == nil {
		return nil
	}
	for _, doc := range docs {
		if s.objects.Are(doc.Type) && s.config.Home.MayWrite(doc.Descriptor()) {
			return byKubectl(doc.Type, "apply")
		}
	}
	return nil
}

// deletedByKubectl refuses to delete a resource that is an object of a Kubernetes cluster. A resource without an
// object, or whose object is gone, can be deleted here.
func (s *Server) deletedByKubectl(old *resources.Resource) error {
	if s.objects == nil || old == nil {
		return nil
	}
	if s.config.Home.Discovered(old) {
		reason := fmt.Sprintf("the zone makes this %s of %s: change that", old.Type, madeOf(old))
		return NewError(http.StatusMethodNotAllowed, "Method not allowed", reason).WithField("name", "%s", reason)
	}
	if old.Object.IsZero() || s.objects.Gone(old.Key) {
		return nil
	}
	return byKubectl(old.Type, "delete")
}

// discovered refuses a user's document whose name belongs to a resource that the zone makes from a pod or a Service.
func (s *Server) discovered(state store.Snapshot, doc *resources.Resource) error {
	if old := state.Get(doc.Key); s.objects != nil && old != nil && s.config.Home.Discovered(old) {
		return invalidField(doc.Key, "name", fmt.Sprintf("the zone makes the %s %s of %s: change that, or choose another name",
			old.Type, strings.TrimPrefix(old.Namespace+"/"+old.Name, "/"), madeOf(old)))
	}
	return nil
}

// madeOf names the object that a zone made a resource from.
func madeOf(r *resources.Resource) string {
	if r.Type == resources.TypeDataplane || r.Type == resources.TypeZoneIngress {
		return "the Pod of its name"
	}
	return "the Service " + r.Labels[resources.LabelServiceName]
}

func byKubectl(t resources.Type, verb string) error {
	reason := fmt.Sprintf("a %s is an object of the Kubernetes cluster here: use kubectl %s, where Kubernetes says who may", t, verb)
	return NewError(http.StatusMethodNotAllowed, "Method not allowed", reason).WithField("type", "%s", reason)
}
