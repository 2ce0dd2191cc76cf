package access

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/resources"
)

// Action is what a caller wants to do to one thing.
type Action struct {
	// Verb is one of resources.AccessVerbs.
	Verb string
	// Type is a type of the registry, or one of resources.AccessThings.
	Type string
	// Scope defines which of these fields the thing has; empty is ScopeServer.
	Scope Scope
	// Mesh, Namespace and Name are empty if the thing has none.
	Mesh, Namespace, Name string
}

// On returns the action of a verb on the resource under key. The key must name its home.
func On(verb string, key resources.Key) Action {
	if key.Type == resources.TypeMesh { // who may see a mesh may see the Mesh
		key.Mesh = key.Name
	}
	return About(verb, string(key.Type), key.Mesh, key.Namespace, key.Name)
}

// OnResource returns the action of a verb on a resource. It uses the resource's home: access to a copy depends on where
// it was written and on its name there.
func OnResource(verb string, r *resources.Resource) Action {
	return On(verb, resources.Key{Type: r.Type, Mesh: r.Mesh, Namespace: r.HomeNamespace(), Name: r.DisplayName()})
}

// OnKRI returns the action of a verb on the resource of a KRI, whether or not it exists.
func OnKRI(verb string, kri resources.KRI) Action {
	d, _ := resources.LookupShort(kri.Short)
	if d == nil {
		return Action{Verb: verb}
	}
	return On(verb, resources.Key{Type: d.Type, Mesh: kri.Mesh, Namespace: kri.Namespace, Name: kri.Name})
}

// About returns the action of a verb on a thing of a type. It ignores values that the scope of such things does not
// have.
func About(verb, thing, mesh, namespace, name string) Action {
	a := Action{Verb: verb, Type: thing, Scope: ScopeOf(verb, thing)}
	switch a.Scope {
	case ScopeNamespace:
		a.Mesh, a.Namespace, a.Name = mesh, namespace, name
	case ScopeMesh:
		a.Mesh, a.Name = mesh, name
	case ScopeResource:
		a.Name = name
	}
	return a
}

// String returns the permission that the action needs, for people: `update MeshTimeout "slow" in mesh default,
// namespace payments`.
func (a Action) String() string {
	if a.Verb == resources.AccessAny {
		return "everything (the role " + resources.RoleAdmin + ")"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", a.Verb, cmp.Or(a.Type, "anything"))
	if a.Name != "" {
		fmt.Fprintf(&b, " %q", a.Name)
	}
	var in []string
	if a.Mesh != "" {
		in = append(in, "mesh "+a.Mesh)
	}
	if a.Namespace != "" {
		in = append(in, "namespace "+a.Namespace)
	}
	if len(in) > 0 {
		b.WriteString(" in " + strings.Join(in, ", "))
	}
	return b.String()
}

// Assignments returns the identities that a change newly gives a Dataplane, each as the action that it needs. The
// labels of a Dataplane decide which identities it can have. If no label applies, its name does. by holds the labels
// that the MeshIdentities of the mesh use (resources.IdentityLabels): each is assigned as the workload
// `<label>=<value>`. Source: seed 003, "TrafficTarget": who assigns a service account decides who receives its traffic.
func Assignments(old, dataplane *resources.Resource, by map[string]bool) []Action {
	had := map[Action]bool{}
	if old != nil {
		for _, a := range identities(old, by) {
			had[a] = true
		}
	}
	var out []Action
	for _, a := range identities(dataplane, by) {
		if !had[a] {
			out = append(out, a)
		}
	}
	return out
}

// Answers returns the identities that a change newly accepts for a MeshService, each as the action that it needs:
// whoever has such an identity receives its clients and everything that they send. Identities of the service's own
// namespace belong to its owner. Any other is assigned as the workload in its path, or else as the whole SPIFFE ID.
func Answers(old, service *resources.Resource) []Action {
	had := map[string]bool{}
	if old != nil {
		for _, id := range namedIdentities(old) {
			had[id] = true
		}
	}
	var out []Action
	for _, id := range namedIdentities(service) {
		parsed, err := spiffeid.FromString(id)
		if had[id] || err != nil { // an invalid SPIFFE ID matches no workload, and validation refuses it
			continue
		}
		byZone := strings.HasSuffix(parsed.TrustDomain().Name(), resources.TrustDomainSuffix) // so are the paths, and the zone is the service's
		if ns := service.HomeNamespace(); byZone && ns != "" && strings.HasPrefix(parsed.Path(), "/ns/"+ns+"/") {
			continue
		}
		workload, named := strings.CutPrefix(parsed.Path(), "/workload/")
		if !byZone || !named {
			workload = id
		}
		out = append(out, About(resources.VerbAssign, resources.AccessWorkload, service.Mesh, "", workload))
	}
	return out
}

func namedIdentities(service *resources.Resource) []string {
	spec, err := resources.SpecAs[resources.MeshService](service)
	if err != nil {
		return nil
	}
	var out []string
	for _, id := range spec.Identities {
		if id.Type == "SpiffeID" {
			out = append(out, id.Value)
		}
	}
	return out
}

// identities returns the identities that a Dataplane's labels and name claim. A workload belongs to no namespace: a
// caller needs permission for the whole mesh to assign it.
func identities(dp *resources.Resource, by map[string]bool) []Action {
	var out []Action
	namespace, account, workload := dp.HomeNamespace(), dp.Labels[resources.LabelServiceAccount],
		dp.Labels[resources.LabelWorkload]
	if account != "" {
		out = append(out, About(resources.VerbAssign, resources.AccessServiceAccount, dp.Mesh, namespace, account))
	}
	if workload == "" && (namespace == "" || account == "" || by[resources.LabelWorkload]) {
		workload = dp.DisplayName()
	}
	if workload != "" {
		out = append(out, About(resources.VerbAssign, resources.AccessWorkload, dp.Mesh, "", workload))
	}
	for _, label := range slices.Sorted(maps.Keys(by)) {
		if value, there := dp.Labels[label]; there && label != resources.LabelServiceAccount &&
			label != resources.LabelWorkload {
			out = append(out, About(resources.VerbAssign, resources.AccessWorkload, dp.Mesh, "", label+"="+value))
		}
	}
	return out
}
