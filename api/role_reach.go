package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
)

// roleWarnings warns about the parts of an AccessRole that permit nothing, of which its author may be unaware. Each
// warning names its field.
func roleWarnings(r *resources.Resource) []string {
	if r.Type != resources.TypeAccessRole {
		return nil
	}
	role, err := resources.SpecAs[resources.AccessRole](r)
	if err != nil {
		return nil
	}
	var out []string
	for i := range role.Rules {
		at := fmt.Sprintf("spec.rules[%d]", i)
		out = append(out, ruleWarnings(at, &role.Rules[i])...)
	}
	return out
}

func ruleWarnings(at string, rule *resources.AccessRule) []string {
	var out []string
	for i, thing := range rule.Types {
		if thing == resources.AccessAny {
			continue
		}
		if why := unreached(rule, thing); why != "" {
			out = append(out, fmt.Sprintf("%s.types[%d]: the rule permits nothing with a %s: %s", at, i, thing, why))
		}
	}
	for i, verb := range rule.Verbs {
		if !slices.ContainsFunc(rule.Types, func(thing string) bool { return applies(verb, thing) }) {
			out = append(out, fmt.Sprintf("%s.verbs[%d]: the verb %s applies to none of the types of the rule", at, i, verb))
		}
	}
	for i, name := range rule.Names {
		if name != resources.AccessAny && !resources.IsName(name) && !slices.ContainsFunc(rule.Types, freelyNamed) {
			out = append(out, fmt.Sprintf("%s.names[%d]: %q cannot be a name: want %s", at, i, name, resources.WantName))
		}
	}
	return out
}

// unreached returns the reason why a rule permits nothing on things of a type, or "" if it permits something.
func unreached(rule *resources.AccessRule, thing string) string {
	fits := false
	for _, verb := range rule.Verbs {
		if !applies(verb, thing) {
			continue
		}
		fits = true
		for _, scope := range scopesOf(verb, thing) {
			if excess(rule, scope) == "" {
				return ""
			}
		}
	}
	if !fits {
		return "none of its verbs applies to it"
	}
	widest := scopesOf(rule.Verbs[slices.IndexFunc(rule.Verbs, func(verb string) bool { return applies(verb, thing) })],
		thing)[0]
	return "it belongs to " + map[access.Scope]string{access.ScopeServer: "the whole server",
		access.ScopeResource: "no mesh and no namespace",
		access.ScopeMesh:     "all of its mesh"}[widest] + ": leave out " + excess(rule, widest)
}

// excess returns the lists of a rule that exclude things of a scope.
func excess(rule *resources.AccessRule, scope access.Scope) string {
	var lists []string
	if rule.Meshes != nil && (scope == access.ScopeServer || scope == access.ScopeResource) {
		lists = append(lists, "meshes")
	}
	if rule.Namespaces != nil && scope != access.ScopeNamespace {
		lists = append(lists, "namespaces")
	}
	if rule.Names != nil && scope == access.ScopeServer {
		lists = append(lists, "names")
	}
	return strings.Join(lists, ", ")
}

// scopesOf returns the scopes of a verb on things of a type. The table of routes may add scopes to the verb's own.
func scopesOf(verb, thing string) []access.Scope {
	verbs := []string{verb}
	if verb == resources.AccessAny {
		verbs = resources.AccessVerbs()
	}
	var out []access.Scope
	for _, verb := range verbs {
		if applies(verb, thing) {
			out = append(out, access.ScopeOf(verb, thing))
		}
		for i := range rows {
			if rows[i].Type == thing && rows[i].Scope != "" && slices.Contains(rows[i].verbs(), verb) {
				out = append(out, rows[i].Scope)
			}
		}
	}
	return out
}

// applies reports whether the verb has any use for things of a type.
func applies(verb, thing string) bool {
	if verb == resources.AccessAny || thing == resources.AccessAny {
		return true
	}
	for i := range rows {
		if rows[i].Type == thing && slices.Contains(rows[i].verbs(), verb) {
			return true
		}
	}
	if verb == resources.VerbUnguard {
		return thing == string(resources.TypeMeshProxyPatch)
	}
	if _, ok := resources.Lookup(resources.Type(thing)); ok {
		switch verb {
		case resources.VerbRead, resources.VerbReadSecret, resources.VerbCreate, resources.VerbUpdate, resources.VerbDelete:
			return true
		}
	}
	switch thing {
	case resources.AccessServiceAccount, resources.AccessWorkload:
		return verb == resources.VerbAssign
	case resources.AccessUserGroup:
		return verb == resources.VerbIssue
	}
	return false
}

// freelyNamed reports whether the names of a thing are free: users' names, ids or the values of labels.
func freelyNamed(thing string) bool {
	_, ok := resources.Lookup(resources.Type(thing))
	return !ok
}
