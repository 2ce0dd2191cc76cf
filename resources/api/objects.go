package api

import (
	"fmt"
	"net/http"

	"github.com/causeway-mesh/causeway/resources"
)

// writtenByKubectl refuses documents that users write as objects of a Kubernetes cluster.
func (s *Server) writtenByKubectl(docs []*resources.Resource) error {
	if s.config.Objects == nil {
		return nil
	}
	for _, doc := range docs {
		if s.config.Objects.Are(doc.Type) && s.config.Home.MayWrite(doc.Descriptor()) {
			return byKubectl(doc.Type, "apply")
		}
	}
	return nil
}

// deletedByKubectl refuses to delete a resource that is an object of a Kubernetes cluster. What has no object, or has one
// no longer, can be deleted here.
func (s *Server) deletedByKubectl(old *resources.Resource) error {
	if s.config.Objects == nil || old == nil || old.Object.IsZero() || s.config.Objects.Gone(old.Key) {
		return nil
	}
	return byKubectl(old.Type, "delete")
}

func byKubectl(t resources.Type, verb string) error {
	reason := fmt.Sprintf("a %s is an object of the Kubernetes cluster here: use kubectl %s, where Kubernetes says who may", t, verb)
	return NewError(http.StatusMethodNotAllowed, "Method not allowed", reason).WithField("type", "%s", reason)
}
