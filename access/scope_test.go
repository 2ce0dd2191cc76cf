package access_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// rolesWith returns the roles of the user u, who has one rule.
func rolesWith(t *testing.T, rule string) (*access.Roles, store.Store) {
	t.Helper()
	text := "{type: AccessRole, name: r, spec: {rules: [" + rule +
		"]}}\n---\n{type: AccessRoleBinding, name: b, spec: {subjects: [{type: User, name: u}], roles: [r]}}"
	docs, err := resources.DecodeDocuments([]byte(text), resources.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := store.NewMemory()
	for _, doc := range docs {
		if _, err := s.Apply(context.Background(), store.Batch{Ops: []store.Op{{Put: doc}}}); err != nil {
			t.Fatal(err)
		}
	}
	return access.CompileRoles(s.Snapshot()), s
}

// TestScopes checks which rules reach resources of the server, a mesh and a namespace, whatever else the request
// contains.
func TestScopes(t *testing.T) {
	u := access.Subject{Name: "u", Method: access.ByToken}
	of := map[access.Scope]access.Action{
		access.ScopeServer: access.About(resources.VerbRotate, resources.AccessKey, "default", "payments", "payments"),
		access.ScopeResource: access.About(resources.VerbUpdate, string(resources.TypeZone), "default", "payments",
			"payments"),
		access.ScopeMesh: access.About(resources.VerbAssign, resources.AccessWorkload, "default", "payments",
			"payments"),
		access.ScopeNamespace: access.About(resources.VerbUpdate, string(resources.TypeMeshTimeout), "default",
			"payments", "payments"),
	}
	for lists, reached := range map[string]string{
		"":                       "server resource mesh namespace",
		"names: [payments]":      "resource mesh namespace",
		`names: ["*"]`:           "resource mesh namespace",
		"names: [other]":         "",
		"meshes: [default]":      "mesh namespace",
		`meshes: ["*"]`:          "mesh namespace",
		"meshes: [other]":        "",
		"namespaces: [payments]": "namespace",
		`namespaces: ["*"]`:      "namespace",
		`namespaces: [""]`:       "",
		"meshes: [default], namespaces: [payments]": "namespace",
		"meshes: [default], names: [payments]":      "mesh namespace",
		"namespaces: [payments], names: [payments]": "namespace",
		"namespaces: []": "", // validation refuses it; if stored anyway, it grants nothing
		"meshes: []":     "", "names: []": "",
	} {
		roles, _ := rolesWith(t, `{verbs: ["*"], types: ["*"], `+lists+`}`)
		for scope, a := range of {
			want := slices.Contains(strings.Fields(reached), string(scope))
			if got := roles.Allows(u, a); got != want {
				t.Errorf("a rule with %q: %s (%s): allowed %t, want %t", lists, a, scope, got, want)
			}
			if roles.Allows(u, a) && !roles.AllowsSome(u, a) {
				t.Errorf("a rule with %q: %s: allowed, and AllowsSome says that nothing is", lists, a)
			}
		}
	}
}

// TestNobodyGivesAwayTheServer checks that a list of "*" is less than no list: its holder cannot grant a rule without
// one.
func TestNobodyGivesAwayTheServer(t *testing.T) {
	u := access.Subject{Name: "u", Method: access.ByToken}
	for _, c := range []struct {
		own, given string
		covered    bool
	}{
		{``, ``, true}, {``, `namespaces: [payments]`, true}, {`namespaces: ["*"]`, ``, false},
		{`meshes: ["*"]`, ``, false}, {`names: ["*"]`, ``, false},
		{`namespaces: ["*"]`, `namespaces: ["*"]`, true}, {`namespaces: ["*"]`, `namespaces: [payments]`, true},
		{`namespaces: [payments]`, `namespaces: ["*"]`, false},
		{`meshes: [default]`, `meshes: [default], namespaces: [payments]`, true},
		{`namespaces: [payments]`, `meshes: [default]`, false},
		{`namespaces: [payments]`, `namespaces: [payments], names: [a]`, true},
		{`names: [a]`, `namespaces: [payments]`, false},
	} {
		_, s := rolesWith(t, `{verbs: ["*"], types: ["*"], `+c.own+`}`)
		docs, err := resources.DecodeDocuments([]byte(`{type: AccessRole, name: new, spec: {rules: [{verbs: ["*"], types: ["*"], `+c.given+`}]}}`), resources.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		before := s.Snapshot()
		err = access.CheckGrant(u, before, store.Overlay(before, docs), docs)
		if (err == nil) != c.covered {
			t.Errorf("who has %q gives %q: %v, want allowed %t", c.own, c.given, err, c.covered)
		}
	}
}

// A null list is not an absent one.
func TestNullLists(t *testing.T) {
	for _, field := range []string{"meshes", "namespaces", "names"} {
		text := "{type: AccessRole, name: r, spec: {rules: [{verbs: [read], types: [Mesh], " + field + ": }]}}"
		if _, err := resources.DecodeDocuments([]byte(text), resources.DecodeOptions{}); err == nil {
			t.Errorf("%s is taken as a rule for everything", text)
		}
	}
}
