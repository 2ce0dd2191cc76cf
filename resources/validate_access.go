package resources

import "slices"

// Limits of the contents of roles and bindings, because every request evaluates them.
const (
	maxAccessRules  = 100
	maxAccessValues = 200
	maxSubjectBytes = 256
)

func (v *validation) accessRole(role *AccessRole) {
	if v.resource.Name == RoleAdmin || v.resource.Name == RoleViewer {
		v.fail(top("name"), "%s is a built-in role and cannot be changed: choose another name", v.resource.Name)
	}
	at := top("spec").field("rules")
	if len(role.Rules) == 0 {
		v.fail(at, "is required: a role without rules permits nothing")
	}
	if len(role.Rules) > maxAccessRules {
		v.fail(at, "has %d rules, want at most %d", len(role.Rules), maxAccessRules)
		return
	}
	things := append(typeNames(), AccessThings()...)
	for i := range role.Rules {
		rule := &role.Rules[i]
		v.accessWords(at.item(i).field("verbs"), rule.Verbs, AccessVerbs())
		v.accessWords(at.item(i).field("types"), rule.Types, things)
		v.accessNames(at.item(i).field("meshes"), rule.Meshes, false)
		v.accessForm(at.item(i).field("meshes"), rule.Meshes, IsMeshName)
		v.accessNames(at.item(i).field("namespaces"), rule.Namespaces, true)
		v.accessForm(at.item(i).field("namespaces"), rule.Namespaces, IsNamespaceName)
		v.accessNames(at.item(i).field("names"), rule.Names, false)
	}
}

// accessWords checks that words are known, or AccessAny.
func (v *validation) accessWords(at *fieldPath, words, known []string) {
	if len(words) == 0 {
		v.fail(at, "is required; %q means all", AccessAny)
	}
	for i, word := range words {
		if word != AccessAny && !slices.Contains(known, word) {
			v.fail(at.item(i), "unknown value %q%s", shorten(word), Suggestion(word, known))
		}
	}
}

func (v *validation) accessNames(at *fieldPath, names []string, emptyToo bool) {
	if names != nil && len(names) == 0 {
		v.fail(at, "is an empty list: leave it out to mean all")
	}
	if len(names) > maxAccessValues {
		v.fail(at, "has %d values, want at most %d", len(names), maxAccessValues)
	}
	for i, name := range names {
		switch {
		case name == "" && !emptyToo:
			v.fail(at.item(i), "is empty: leave the list out to mean all")
		case len(name) > maxSubjectBytes:
			v.fail(at.item(i), "is %d bytes long, want at most %d", len(name), maxSubjectBytes)
		}
	}
}

// accessForm refuses values that cannot be the name of anything, because the list would reach less than it seems to.
func (v *validation) accessForm(at *fieldPath, names []string, is func(string) bool) {
	for i, name := range names {
		if name != "" && name != AccessAny && !is(name) {
			v.fail(at.item(i), "%q is not a name: want %s", shorten(name), wantLabel)
		}
	}
}

func (v *validation) accessRoleBinding(binding *AccessRoleBinding) {
	subjects, roles := top("spec").field("subjects"), top("spec").field("roles")
	if len(binding.Subjects) == 0 {
		v.fail(subjects, "is required: the users and groups that get the roles")
	}
	if len(binding.Roles) == 0 {
		v.fail(roles, "is required: the names of AccessRoles, %s or %s", RoleAdmin, RoleViewer)
	}
	if len(binding.Subjects) > maxAccessValues || len(binding.Roles) > maxAccessValues {
		v.fail(subjects, "there are more than %d subjects or roles: make several bindings", maxAccessValues)
		return
	}
	for i, subject := range binding.Subjects {
		at := subjects.item(i)
		if subject.Type != SubjectUser && subject.Type != SubjectGroup {
			v.fail(at.field("type"), "want %s or %s, got %q", SubjectUser, SubjectGroup, shorten(subject.Type))
		}
		if subject.Name == "" || len(subject.Name) > maxSubjectBytes {
			v.fail(at.field("name"), "want 1 to %d bytes, got %d", maxSubjectBytes, len(subject.Name))
		}
	}
	v.accessNames(roles, binding.Roles, false)
}
