package api

import (
	"net/http"
	"strings"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
)

// Servers is a set of servers that have a route.
type Servers int

// The servers.
const (
	OnGlobal Servers = 1 << iota
	OnZone
	onBoth = OnGlobal | OnZone
)

// Row holds the requirements of a route. They depend only on the route and on the thing that it acts on, never on a
// parameter of a request.
type Row struct {
	// Pattern is the pattern for http.ServeMux, including the method.
	Pattern string
	// On is the set of servers that have the route.
	On Servers
	// Verb is one of resources.AccessVerbs, or several, separated by commas, which are tried in order. Empty means that
	// every authenticated caller may use the route.
	Verb string
	// Type is a type of resources, or one of resources.AccessThings. Empty means the type that the path or the body
	// names.
	Type string
	// Scope is the scope of the thing. Empty means the scope of the type that the request names.
	Scope access.Scope
	// ByThing means that the path does not identify the thing. The handler looks the thing up, or reads it from the
	// body, and checks the permission for its home (Find, Authorize, Reader). The route alone refuses only callers that
	// have the permission for no thing. If a handler responds before it has checked a permission, the response is a
	// 500.
	ByThing bool
	// Name is the part of the path that holds the thing's name. It is empty if there is none.
	Name string
	// Expensive means that the response costs time or memory in proportion to the mesh. A user has few such requests in
	// progress at a time; the others wait. All dry runs are expensive.
	Expensive bool
	// Policies means that the answer depends on policies, of whatever type the thing is.
	Policies bool
	// Conditional means that the handler honours If-Match and If-None-Match. Other changes refuse them.
	Conditional bool
	// Overviews means that the response shows who is connected: a watch of it ends when that changes, too.
	Overviews bool
	// Waits means that the handler itself waits for what `watch` names (AwaitOther).
	Waits bool
	// EveryNamespace means that the parameter namespace only narrows the answer: there is no way to ask for what is in no
	// namespace, so an empty one is refused.
	EveryNamespace bool
	// Query lists the query parameters that the handler uses, separated by commas; filter stands for filter[...]. A
	// request with any other is refused. All GET requests also accept revision.
	Query string
}

// Table returns all rows. The caller owns the slice.
func Table() []Row { return append([]Row(nil), rows[:]...) }

// Method returns the method of the pattern.
func (row *Row) Method() string {
	method, _, _ := strings.Cut(row.Pattern, " ")
	return method
}

// Path returns the path of the pattern, as OpenAPI writes it.
func (row *Row) Path() string {
	_, path, _ := strings.Cut(row.Pattern, " ")
	return strings.TrimSuffix(path, "{$}")
}

// verbs returns the verbs of the row.
func (row *Row) verbs() []string { return strings.Split(row.Verb, ",") }

// action returns the action of a request, as far as the route determines it.
func (row *Row) action(r *http.Request, verb string) access.Action {
	of := row.Type
	if of == "" {
		of = typeOfPath(r)
	}
	name := ""
	if row.Name != "" {
		name = r.PathValue(row.Name)
	}
	if kri, err := resources.ParseKRI(name); isKRI(name) && err == nil { // the handler checks the home of the resource
		name = kri.Name
	}
	a := access.Action{Verb: verb, Type: of, Scope: row.Scope}
	if a.Scope == "" {
		a.Scope = access.ScopeOf(verb, of)
		if of == "" { // any type: things with the widest scope of rules
			a.Scope = namespace
		}
	}
	switch a.Scope {
	case namespace, mesh:
		a.Mesh, a.Name = r.PathValue("mesh"), name
	default: // things of the server have names only for the audit log; rules do not use them
		a.Name = name
	}
	return a
}
