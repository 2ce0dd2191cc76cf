package access_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// commitOf returns the commit that creates a resource.
func commitOf(t *testing.T, kind, mesh, name, spec string) *store.Commit {
	t.Helper()
	parsed, err := resources.NewSpec(resources.Type(kind), []byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	r := resources.Home{}.Labelled(&resources.Resource{Key: resources.Key{Type: resources.Type(kind), Mesh: mesh,
		Name: name}, Spec: parsed})
	commit, err := store.NewMemory().Apply(context.Background(), store.Batch{Ops: []store.Op{{Put: r}}})
	if err != nil {
		t.Fatal(err)
	}
	return commit
}

// stateOf returns a store with the documents of a file.
func stateOf(t *testing.T, file string) store.Store {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	docs, err := resources.DecodeDocuments(raw, resources.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := store.NewMemory()
	for _, doc := range docs {
		if err := resources.Validate(doc, resources.Home{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: resources.Home{}.Labelled(doc)}}}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestRoles checks each row of testdata/roles_rows.yaml against the roles and bindings of testdata/roles.yaml.
func TestRoles(t *testing.T) {
	roles := access.CompileRoles(stateOf(t, "roles.yaml").Snapshot())
	var rows []struct {
		User                              string
		Groups                            []string
		Verb, Type, Mesh, Namespace, Name string
		Allowed                           bool
	}
	raw, err := os.ReadFile("testdata/roles_rows.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(raw, &rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		a := access.About(row.Verb, row.Type, row.Mesh, row.Namespace, row.Name)
		t.Run(fmt.Sprintf("%s%v_%s", row.User, row.Groups, a), func(t *testing.T) {
			if got := roles.Allows(access.Subject{Name: row.User, Groups: row.Groups}, a); got != row.Allowed {
				t.Errorf("allowed: %t, want %t", got, row.Allowed)
			}
		})
	}
}

func TestIdentitiesOfADataplane(t *testing.T) {
	dataplane := func(name, namespace string, labels map[string]string) *resources.Resource {
		spec, err := resources.NewSpec(resources.TypeDataplane, []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		return &resources.Resource{Key: resources.Key{Type: resources.TypeDataplane, Mesh: "default",
			Namespace: namespace, Name: name}, Labels: labels, Spec: spec}
	}
	account := map[string]string{resources.LabelServiceAccount: "backend"}
	both := map[string]string{resources.LabelServiceAccount: "backend", resources.LabelWorkload: "worker"}
	for what, c := range map[string]struct {
		old, now *resources.Resource
		want     []string
		by       map[string]bool
	}{
		"its name is an identity": {nil, dataplane("a", "", nil),
			[]string{`assign Workload "a" in mesh default`}, nil},
		"in a namespace too": {nil, dataplane("a", "ns", nil),
			[]string{`assign Workload "a" in mesh default`}, nil},
		"a service account in a namespace": {nil, dataplane("a", "ns", account),
			[]string{`assign ServiceAccount "backend" in mesh default, namespace ns`}, nil},
		"a service account without a namespace": {nil, dataplane("a", "", account),
			[]string{`assign ServiceAccount "backend" in mesh default`, `assign Workload "a" in mesh default`}, nil},
		"both": {nil, dataplane("a", "ns", both),
			[]string{`assign ServiceAccount "backend" in mesh default, namespace ns`,
				`assign Workload "worker" in mesh default`}, nil},
		"an update that keeps it":      {dataplane("a", "ns", account), dataplane("a", "ns", account), nil, nil},
		"an update that takes it away": {dataplane("a", "ns", both), dataplane("a", "ns", account), nil, nil},
		"an update that falls back to the name": {dataplane("a", "ns", account), dataplane("a", "ns", nil),
			[]string{`assign Workload "a" in mesh default`}, nil},
		"an update that adds another": {dataplane("a", "ns", account), dataplane("a", "ns", both),
			[]string{`assign Workload "worker" in mesh default`}, nil},
		"a label that MeshIdentities look at": {
			nil, dataplane("a", "ns", map[string]string{resources.LabelServiceAccount: "backend", "team": "pay", "other": "x"}),
			[]string{`assign ServiceAccount "backend" in mesh default, namespace ns`,
				`assign Workload "team=pay" in mesh default`}, map[string]bool{"team": true},
		},
		"a workload that MeshIdentities look at": {
			nil, dataplane("a", "ns", account),
			[]string{`assign ServiceAccount "backend" in mesh default, namespace ns`,
				`assign Workload "a" in mesh default`}, map[string]bool{resources.LabelWorkload: true},
		},
	} {
		var got []string
		for _, a := range access.Assignments(c.old, c.now, c.by) {
			got = append(got, a.String())
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

// TestGrants checks that nobody grants more than they have, or removes the last admin remotely.
func TestGrants(t *testing.T) {
	state := stateOf(t, "roles.yaml").Snapshot()
	document := func(text string) *resources.Resource {
		docs, err := resources.DecodeDocuments([]byte(text), resources.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return docs[0]
	}
	owner, root := access.Subject{Name: "olga", Method: access.ByToken},
		access.Subject{Name: "root", Method: access.ByToken}
	binding := func(role string) *resources.Resource {
		return document(`{type: AccessRoleBinding, name: more, spec: {subjects: [{type: User, name: olga}], roles: [` +
			role + `]}}`)
	}
	role := func(rule string) *resources.Resource {
		return document(`{type: AccessRole, name: new, spec: {rules: [` + rule + `]}}`)
	}
	for what, c := range map[string]struct {
		by      access.Subject
		changed *resources.Resource
		allowed bool
	}{
		"what she has": {owner, role(
			`{verbs: [update], types: [MeshTimeout], meshes: [default], namespaces: [payments], names: [a]}`), true},
		"another namespace": {owner,
			role(`{verbs: [update], types: [MeshTimeout], meshes: [default], namespaces: [payments, orders]}`), false},
		"all namespaces": {owner, role(`{verbs: [update], types: [MeshTimeout], meshes: [default]}`), false},
		"another verb": {owner,
			role(`{verbs: [update, sign], types: [MeshTimeout], meshes: [default], namespaces: [payments]}`), false},
		"another mesh": {owner,
			role(`{verbs: [update], types: [MeshTimeout], namespaces: [payments]}`), false},
		"every type": {owner,
			role(`{verbs: [update], types: ["*"], meshes: [default], namespaces: [payments]}`), false},
		"a role that she has":           {owner, binding("payments-owner"), true},
		"the role admin":                {owner, binding("admin"), false},
		"a role that is not there":      {owner, binding("later"), false},
		"an admin gives a role to come": {root, binding("later"), true},
		"an admin gives the role admin": {root, binding("admin"), true},
	} {
		err := access.CheckGrant(c.by, state, store.Overlay(state, []*resources.Resource{c.changed}),
			[]*resources.Resource{c.changed})
		if (err == nil) != c.allowed {
			t.Errorf("%s: %v, want allowed %t", what, err, c.allowed)
		}
	}
	last := resources.Key{Type: resources.TypeAccessRoleBinding, Name: "admins"}
	token := access.Subject{Name: "someone", Groups: []string{access.AdminGroup}, Method: access.ByToken}
	for what, c := range map[string]struct {
		by      access.Subject
		allowed bool
	}{
		"who it is about": {root, false}, "another admin": {token, false},
		"over loopback": {access.Subject{Name: access.AdminUser, Groups: []string{access.AdminGroup},
			Method: access.ByLoopback}, true},
	} {
		if err := access.CheckGrant(c.by, state, store.Without(state, last), nil); (err == nil) != c.allowed {
			t.Errorf("the last binding of admin removed by %s: %v, want allowed %t", what, err, c.allowed)
		}
	}
}
