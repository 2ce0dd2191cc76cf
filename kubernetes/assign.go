package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/kubernetes/apiserver"
	"github.com/causeway-mesh/causeway/resources"
)

const (
	// assignTime limits the requests about one object. The API server waits 5 s for the webhook.
	assignTime = 4 * time.Second
	// maxAsked limits how many identities of one object are checked one by one.
	maxAsked = 16
)

// Workloads is the plural for assignments in the whole cluster. There are no such objects; only roles use the name.
const Workloads = "workloads"

// mayAssign refuses an object by which a user newly gives a Dataplane an identity, or lets one answer for a
// MeshService, unless the API server confirms that the user may. The HTTP API asks its own roles the same. Nothing is
// cached, so a revoked right ends at once.
func (b *Bridge) mayAssign(ctx context.Context, u apiserver.User, doc *resources.Resource) error {
	assigned := b.Routes.Assigned(doc)
	if len(assigned) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, assignTime)
	defer cancel()
	asked := assigned
	if len(asked) > maxAsked {
		asked = wholly(assigned)
	}
	for _, a := range asked {
		may, err := b.Prompt.May(ctx, u, rightOf(a))
		if err != nil {
			b.Log.Warn("cannot ask the Kubernetes API server who may assign; such writes are refused", "user", u.Username, "error", err)
			return unknownRight(doc, a, err)
		}
		if !may {
			return unassigned(u, doc, a, len(assigned))
		}
	}
	return nil
}

// wholly returns the actions on all names of the things in list.
func wholly(list []access.Action) []access.Action {
	var out []access.Action
	seen := map[access.Action]bool{}
	for _, a := range list {
		if a.Name = ""; !seen[a] {
			seen[a] = true
			out = append(out, a)
		}
	}
	return out
}

// rightOf returns the right in Kubernetes roles to assign an identity. A service account belongs to its namespace. A
// workload belongs to no namespace and roles know no meshes, so its mesh is part of the name.
func rightOf(a access.Action) apiserver.Right {
	if a.Type == resources.AccessServiceAccount {
		return apiserver.Right{Verb: a.Verb, Resource: "serviceaccounts", Namespace: a.Namespace, Name: a.Name}
	}
	r := apiserver.Right{Verb: a.Verb, Group: group, Resource: Workloads}
	if a.Name != "" {
		r.Name = a.Mesh + "/" + a.Name
	}
	return r
}

// unassigned returns the refusal, with the missing right.
func unassigned(u apiserver.User, doc *resources.Resource, a access.Action, all int) error {
	r := rightOf(a)
	missing := fmt.Sprintf("%s lacks the permission: %s. ", u.Username, a)
	remedy := fmt.Sprintf("A Role in %s with the verb assign on serviceaccounts, as edit has it there, would give it", r.Namespace)
	switch {
	case r.Resource == Workloads && a.Name == "":
		missing = fmt.Sprintf("%s lacks the permission: assign Workload in mesh %s, without resourceNames because the object assigns %d. ", u.Username, a.Mesh, all)
		remedy = "The ClusterRole causeway-assign would give it, by a ClusterRoleBinding"
	case r.Resource == Workloads:
		remedy = fmt.Sprintf("A ClusterRoleBinding of causeway-assign would give it, or of a ClusterRole with the verb assign on workloads of %s, resourceNames: [%q]", group, r.Name)
	}
	return api.NewError(http.StatusForbidden, "Access Denied", "").WithField(fieldOf(doc, a), "%s", missing+remedy)
}

// unknownRight returns the refusal for a right that nobody confirms.
func unknownRight(doc *resources.Resource, a access.Action, err error) error {
	return api.NewError(http.StatusServiceUnavailable, "Service Unavailable", "").WithField(fieldOf(doc, a),
		"the server cannot ask the Kubernetes API server who may %s, and refuses such writes meanwhile: %v. "+
			"It needs the right to create subjectaccessreviews of authorization.k8s.io, which this version's chart gives it", a, err)
}

// fieldOf returns the field in which an object assigns an identity.
func fieldOf(doc *resources.Resource, a access.Action) string {
	label := func(key string) string { return fmt.Sprintf("metadata.labels[%q]", key) }
	key, value, named := strings.Cut(a.Name, "=")
	switch {
	case doc.Type == resources.TypeMeshService:
		return "spec.identities"
	case a.Type == resources.AccessServiceAccount:
		return label(resources.LabelServiceAccount)
	case named && doc.Labels[key] == value:
		return label(key)
	case a.Name == "" || doc.Labels[resources.LabelWorkload] != "":
		return label(resources.LabelWorkload)
	}
	return "metadata.name"
}
