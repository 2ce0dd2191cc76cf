package access

import (
	"cmp"
	"fmt"
	"strings"

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
