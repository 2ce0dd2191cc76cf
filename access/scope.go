package access

import "github.com/causeway-mesh/causeway/resources"

// Scope defines what a thing belongs to. It is a property of the thing, and of the route that acts on it; nothing in a
// request changes it.
type Scope string

// The scopes, the widest first.
const (
	// ScopeServer is the server as a whole: only a rule that lists no meshes, namespaces and names reaches it. It is
	// the scope of an Action without one.
	ScopeServer Scope = "server"
	// ScopeResource is one thing of the server's that has a name and belongs to no mesh, such as a Zone. A rule reaches
	// it if it lists no meshes and no namespaces; its names are the names of the things.
	ScopeResource Scope = "resource"
	// ScopeMesh is a mesh, or what belongs to all of it, such as a Workload: a rule that lists no namespaces reaches it.
	ScopeMesh Scope = "mesh"
	// ScopeNamespace is a thing of a mesh that lives in a namespace, or in none, which is the namespace "".
	ScopeNamespace Scope = "namespace"
)

// ScopeOf returns the scope of the things of a type, a type of the registry or one of resources.AccessThings, for a
// verb. An unknown thing belongs to the server.
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
		if verb == resources.VerbIssue { // what revoking names is an id, and no user or zone
			return ScopeResource
		}
	case resources.AccessDataplaneToken:
		if verb == resources.VerbIssue {
			return ScopeNamespace
		}
	}
	return ScopeServer
}

// reaches reports whether a rule's meshes, namespaces and names hold of what an action is about.
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

// mayReach reports whether a rule may reach some thing of the action's scope, in its mesh if it has one.
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
