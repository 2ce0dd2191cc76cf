package access

import "github.com/causeway-mesh/causeway/resources"

// Scope defines what a thing belongs to. It depends on the thing and on the route that acts on it; nothing in a request
// changes it.
type Scope string

// The scopes, widest first.
const (
	// ScopeServer is the server as a whole: only a rule without meshes, namespaces and names reaches it. It is the
	// default scope of an Action.
	ScopeServer Scope = "server"
	// ScopeResource is a named thing of the server that belongs to no mesh, such as a Zone. A rule without meshes and
	// namespaces reaches it; the rule's names are those of the things.
	ScopeResource Scope = "resource"
	// ScopeMesh is a mesh, or something that belongs to all of it, such as a Workload: a rule without namespaces
	// reaches it.
	ScopeMesh Scope = "mesh"
	// ScopeNamespace is a thing of a mesh in a namespace, or in none, which is the namespace "".
	ScopeNamespace Scope = "namespace"
)

// ScopeOf returns the scope, for a verb, of things of a type, which is in the registry or one of
// resources.AccessThings. An unknown thing belongs to the server.
func ScopeOf(verb, thing string) Scope {
	if d, ok := resources.Lookup(resources.Type(thing)); ok {
		switch {
		case d.Type == resources.TypeMesh:
			return ScopeMesh
		case d.Scope == resources.ScopeGlobal:
			return ScopeResource
		}
		return ScopeNamespace
	}
	switch thing {
	case resources.AccessServiceAccount, resources.AccessSecret:
		return ScopeNamespace
	case resources.AccessWorkload:
		return ScopeMesh
	case resources.AccessUserToken, resources.AccessUserGroup, resources.AccessZoneToken:
		if verb == resources.VerbIssue { // revoking names an ID, not a user or zone
			return ScopeResource
		}
	case resources.AccessDataplaneToken:
		if verb == resources.VerbIssue {
			return ScopeNamespace
		}
	}
	return ScopeServer
}

// reaches reports whether a rule's meshes, namespaces and names match the thing of an action.
func reaches(rule *resources.AccessRule, a Action) bool {
	switch a.Scope {
	case ScopeNamespace:
		return hasOrAll(rule.Meshes, a.Mesh) && hasOrAll(rule.Namespaces, a.Namespace) && hasOrAll(rule.Names, a.Name)
	case ScopeMesh:
		return rule.Namespaces == nil && hasOrAll(rule.Meshes, a.Mesh) && hasOrAll(rule.Names, a.Name)
	case ScopeResource:
		return rule.Namespaces == nil && rule.Meshes == nil && hasOrAll(rule.Names, a.Name)
	}
	return rule.Namespaces == nil && rule.Meshes == nil && rule.Names == nil
}

// mayReach reports whether a rule may match some thing of the action's scope, in its mesh if it has one.
func mayReach(rule *resources.AccessRule, a Action) bool {
	inMesh := a.Mesh == "" || hasOrAll(rule.Meshes, a.Mesh)
	switch a.Scope {
	case ScopeNamespace:
		return inMesh
	case ScopeMesh:
		return rule.Namespaces == nil && inMesh
	case ScopeResource:
		return rule.Namespaces == nil && rule.Meshes == nil
	}
	return reaches(rule, a)
}
