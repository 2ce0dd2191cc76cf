package api

import (
	"cmp"
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// NamespaceLimits bound what the owner of a namespace may write into it, in each mesh, because namespaces share what
// carries it. The system namespace, and resources in no namespace, belong to the operator and have no limits. A zero
// field means its default.
type NamespaceLimits struct {
	// ServicePorts bounds the ports of all MeshServices: each is a cluster of the zone's ingress. Long lists of identities
	// count as more ports.
	ServicePorts int
	// Dataplanes bounds the Dataplanes: each is an endpoint of every service that selects it.
	Dataplanes int
}

// Defaults of NamespaceLimits, which even a large namespace does not reach.
const (
	DefaultNamespaceServicePorts = 5_000
	DefaultNamespaceDataplanes   = 10_000
)

// namespaceBound is one limit, by the type of the resources that it counts.
type namespaceBound struct {
	field, what, why, flag string
	most                   func(NamespaceLimits) int
	count                  func(*resources.Resource) int
}

var namespaceBounds = map[resources.Type]*namespaceBound{
	resources.TypeMeshService: {
		field: "spec.ports", what: "ports of MeshServices", flag: "--namespace-service-ports",
		why: fmt.Sprintf("the ingress, which all namespaces share, has a cluster for each, and clients' proxies have all identities for each, "+
			"of which %d bytes count as another port", identityRoom),
		most:  func(l NamespaceLimits) int { return cmp.Or(l.ServicePorts, DefaultNamespaceServicePorts) },
		count: servicePorts,
	},
	resources.TypeDataplane: {
		field: "name", what: "Dataplanes", flag: "--namespace-dataplanes",
		why:   "the ingress, which all namespaces share, has an endpoint for each",
		most:  func(l NamespaceLimits) int { return cmp.Or(l.Dataplanes, DefaultNamespaceDataplanes) },
		count: func(*resources.Resource) int { return 1 },
	},
}

func (b *namespaceBound) over(r *resources.Resource, total, most int) string {
	return fmt.Sprintf(
		"the namespace %s of the mesh %s would have %d %s, want at most %d: %s. Remove some, or have the zone's operator raise %s",
		r.Namespace, r.Mesh, total, b.what, most, b.why, b.flag)
}

// Count returns how much a resource counts towards the limit of its type; zero if the type has none.
func (l NamespaceLimits) Count(r *resources.Resource) int {
	if bound := namespaceBounds[r.Type]; bound != nil {
		return bound.count(r)
	}
	return 0
}

// Over returns why the namespace of a resource may not reach a total, with what to do; empty if it may.
func (l NamespaceLimits) Over(r *resources.Resource, total int) string {
	bound := namespaceBounds[r.Type]
	if bound == nil || total <= bound.most(l) {
		return ""
	}
	return bound.over(r, total, bound.most(l))
}

// identityRoom is how many bytes of a MeshService's identities count as another port. All clients' proxies get them for each
// port.
const identityRoom = 4 << 10

// servicePorts counts the ports of a MeshService. One without ports still counts, because it takes memory.
func servicePorts(r *resources.Resource) int {
	spec, err := resources.SpecAs[resources.MeshService](r)
	if err != nil {
		return 1
	}
	return max(len(spec.Ports), 1) + spec.IdentityBytes()/identityRoom
}

// counted identifies what one limit counts.
type counted struct {
	typ             resources.Type
	mesh, namespace string
}

// checkBounds returns the problem, by index, of each document that would grow a namespace beyond a limit. Stored
// resources may stay, change and shrink. It runs under the write lock, and counts only if a batch adds something.
func (s *Server) checkBounds(state store.Snapshot, docs []*resources.Resource) map[int]*resources.InvalidError {
	stored, added := map[counted]int{}, map[counted]int{}
	failed := map[int]*resources.InvalidError{}
	for i, doc := range docs {
		bound := namespaceBounds[doc.Type]
		if bound == nil || s.config.Home.IsOperators(doc.Namespace) {
			continue
		}
		more := bound.count(doc)
		if old := state.Get(doc.Key); old != nil {
			more -= bound.count(old)
		}
		at := counted{doc.Type, doc.Mesh, doc.Namespace}
		added[at] += more
		if more <= 0 {
			continue // no growth is always allowed
		}
		if _, known := stored[at]; !known {
			stored[at] = countAll(state, at, bound)
		}
		if total, most := stored[at]+added[at], bound.most(s.config.NamespaceLimits); total > most {
			failed[i] = invalidField(doc.Key, bound.field, bound.over(doc, total, most))
		}
	}
	return failed
}

func countAll(state store.Snapshot, at counted, bound *namespaceBound) (n int) {
	for r := range state.List(store.Query{Type: at.typ, Mesh: at.mesh, Namespace: &at.namespace}) {
		n += bound.count(r)
	}
	return n
}
