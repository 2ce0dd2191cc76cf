package access

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// Roles are the permissions from the AccessRoles and AccessRoleBindings in one state of a store. It is immutable.
type Roles struct {
	roles         map[string][]resources.AccessRule
	users, groups map[string][]string
}

// builtin returns the rules of the roles that every server has.
func builtin(role string) []resources.AccessRule {
	all := []string{resources.AccessAny}
	switch role {
	case resources.RoleAdmin:
		return []resources.AccessRule{{Verbs: all, Types: all}}
	case resources.RoleViewer:
		return []resources.AccessRule{{Verbs: []string{resources.VerbRead}, Types: viewable()}}
	}
	return nil
}

// viewable returns everything except what reveals people: who may do what, and the audit log.
func viewable() []string {
	types := []string{resources.AccessServer}
	for _, d := range resources.Descriptors() {
		if d.Type != resources.TypeAccessRole && d.Type != resources.TypeAccessRoleBinding {
			types = append(types, string(d.Type))
		}
	}
	return types
}

// CompileRoles reads all roles and bindings of a state. Undecodable ones grant nothing.
func CompileRoles(state store.Snapshot) *Roles {
	r := &Roles{
		roles: map[string][]resources.AccessRule{}, users: map[string][]string{},
		groups: map[string][]string{AdminGroup: {resources.RoleAdmin}},
	}
	for _, name := range []string{resources.RoleAdmin, resources.RoleViewer} {
		r.roles[name] = builtin(name)
	}
	for role := range state.List(store.Query{Type: resources.TypeAccessRole}) {
		if spec, err := resources.SpecAs[resources.AccessRole](role); err == nil && builtin(role.Name) == nil {
			r.roles[role.Name] = spec.Rules
		}
	}
	for binding := range state.List(store.Query{Type: resources.TypeAccessRoleBinding}) {
		spec, err := resources.SpecAs[resources.AccessRoleBinding](binding)
		if err != nil {
			continue
		}
		for _, subject := range spec.Subjects {
			into := r.users
			if subject.Type == resources.SubjectGroup {
				into = r.groups
			}
			into[subject.Name] = append(into[subject.Name], spec.Roles...)
		}
	}
	return r
}

// Allows reports whether a subject may do a.
func (r *Roles) Allows(s Subject, a Action) bool {
	return r.some(s, func(rule *resources.AccessRule) bool { return permits(rule, a) })
}

// AllowsSome reports whether the subject may use the verb on some things of the action's type, scope and mesh. It
// ignores the action's namespace and name; an empty mesh or type matches any.
func (r *Roles) AllowsSome(s Subject, a Action) bool {
	return r.some(s, func(rule *resources.AccessRule) bool {
		return has(rule.Verbs, a.Verb) && (a.Type == "" || has(rule.Types, a.Type)) && mayReach(rule, a)
	})
}

// some reports whether f holds for one of the subject's rules.
func (r *Roles) some(s Subject, f func(*resources.AccessRule) bool) bool {
	try := func(roles []string) bool {
		for _, role := range roles {
			rules := r.roles[role]
			for i := range rules {
				if f(&rules[i]) {
					return true
				}
			}
		}
		return false
	}
	if try(r.users[s.Name]) {
		return true
	}
	return slices.ContainsFunc(s.Groups, func(group string) bool { return try(r.groups[group]) })
}

func permits(rule *resources.AccessRule, a Action) bool {
	return has(rule.Verbs, a.Verb) && has(rule.Types, a.Type) && reaches(rule, a)
}

func has(list []string, word string) bool {
	return slices.Contains(list, word) || slices.Contains(list, resources.AccessAny)
}

// hasOrAll is like has for a list whose absence means everything.
func hasOrAll(list []string, word string) bool { return list == nil || has(list, word) }

// Covers reports whether one of the subject's own rules permits everything that the given rule does, because users can
// grant only what they have.
func (r *Roles) Covers(s Subject, given *resources.AccessRule) bool {
	return r.some(s, func(own *resources.AccessRule) bool {
		return within(own.Verbs, given.Verbs) && within(own.Types, given.Types) &&
			withinOrAll(own.Meshes, given.Meshes) && withinOrAll(own.Namespaces, given.Namespaces) &&
			withinOrAll(own.Names, given.Names)
	})
}

func within(own, given []string) bool {
	return !slices.ContainsFunc(given, func(word string) bool { return !has(own, word) })
}

// withinOrAll reports whether given is within own. An absent list covers more than any list, so only a subject with an
// absent list may grant one.
func withinOrAll(own, given []string) bool {
	return own == nil || given != nil && within(own, given)
}

// admins counts the subjects that bindings make admins.
func (r *Roles) admins() int {
	n := 0
	for _, of := range []map[string][]string{r.users, r.groups} {
		for name, roles := range of {
			if name != AdminGroup && slices.Contains(roles, resources.RoleAdmin) {
				n++
			}
		}
	}
	return n
}

// CheckGrant checks a change of roles and bindings by s, who may write them, from the state before to the state after.
// It refuses to grant permissions that s does not have; to remove one's own right to change bindings; and, for everyone
// but the local administrator, to remove the last binding of the role admin. Each is a *GrantError.
func CheckGrant(s Subject, before, after store.Snapshot, changed []*resources.Resource) error {
	old, now := CompileRoles(before), CompileRoles(after)
	for _, r := range changed {
		if err := old.mayGive(s, now, r); err != nil {
			return err
		}
	}
	if s.Method == ByLoopback {
		return nil
	}
	keep := About(resources.VerbUpdate, string(resources.TypeAccessRoleBinding), "", "", "")
	if old.Allows(s, keep) && !now.Allows(s, keep) {
		return &GrantError{fmt.Sprintf("this would take from %s the permission to change bindings: ask another user to do it, or do it on the server itself over loopback", s.Name)}
	}
	if old.admins() > 0 && now.admins() == 0 {
		return &GrantError{fmt.Sprintf("this would remove the last binding of the role %s: bind another user or group first, or do it on the server itself over loopback", resources.RoleAdmin)}
	}
	return nil
}

// mayGive returns an error if s would grant what it does not have. changed is the new role or binding.
func (r *Roles) mayGive(s Subject, now *Roles, changed *resources.Resource) error {
	given := []string{changed.Name}
	if changed.Type == resources.TypeAccessRoleBinding {
		spec, err := resources.SpecAs[resources.AccessRoleBinding](changed)
		if err != nil {
			return err
		}
		given = spec.Roles
	}
	for _, role := range given {
		rules, ok := now.roles[role]
		if !ok && !r.Allows(s, Action{Verb: resources.AccessAny, Type: resources.AccessAny}) {
			return &GrantError{fmt.Sprintf("unknown AccessRole %q: create it first, or in the same request", role)}
		}
		for i := range rules {
			if !r.Covers(s, &rules[i]) {
				return &GrantError{fmt.Sprintf("%s does not have everything that the role %q permits (rules[%d]): users can grant only what they have", s.Name, role, i)}
			}
		}
	}
	return nil
}

// roleCache keeps the Roles of the newest state.
type roleCache struct {
	store store.Reader
	last  atomic.Pointer[cachedRoles]
}

type cachedRoles struct {
	revision uint64
	roles    *Roles
}

// roles returns the Roles of the newest state. It recompiles them only after roles or bindings changed.
func (c *roleCache) roles() *Roles {
	state := c.store.Snapshot()
	last := c.last.Load()
	if last != nil && last.revision == state.Revision() {
		return last.roles
	}
	next := &cachedRoles{revision: state.Revision()}
	if last != nil && last.revision < next.revision && !c.changedSince(last.revision) {
		next.roles = last.roles
	} else {
		next.roles = CompileRoles(state)
	}
	c.last.Store(next)
	return next.roles
}

func (c *roleCache) changedSince(revision uint64) bool {
	commits, ok := c.store.Changes(revision)
	if !ok {
		return true
	}
	for _, commit := range commits {
		for _, change := range commit.Changes {
			if t := change.Key().Type; t == resources.TypeAccessRole || t == resources.TypeAccessRoleBinding {
				return true
			}
		}
	}
	return false
}
