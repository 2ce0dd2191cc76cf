package api

import (
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// TestRulesThatPermitNothing checks that a warning names each field of a rule that has no effect, and no other.
func TestRulesThatPermitNothing(t *testing.T) {
	for rule, want := range map[string]string{
		`{verbs: ["*"], types: ["*"]}`: "",
		`{verbs: ["*"], types: ["*"], meshes: [default], namespaces: [payments], names: [a]}`:       "",
		`{verbs: [read], types: [MeshTimeout, Mesh], meshes: [default]}`:                            "",
		`{verbs: [assign], types: [ServiceAccount], namespaces: [payments], names: ["any/thing"]}`:  "",
		`{verbs: [assign], types: [Workload], names: ["app=shop"]}`:                                 "",
		`{verbs: [issue], types: [UserToken, UserGroup, DataplaneToken], names: ["a@example.org"]}`: "",
		`{verbs: [read, update, delete], types: [Secret], namespaces: [payments]}`:                  "",
		`{verbs: [revoke], types: [UserToken]}`:                                                     "",
		`{verbs: [read, resync, enable, revoke], types: [Zone], names: [zone-1]}`:                   "",
		`{verbs: [sign], types: [Dataplane], namespaces: [payments]}`:                               "",
		`{verbs: [read], types: [Mesh], meshes: [default], namespaces: [payments]}`:                 "spec.rules[0].types[0]: the rule permits nothing with a Mesh: it belongs to all of its mesh: leave out namespaces",
		`{verbs: [read], types: [MeshTimeout, Zone], meshes: [default]}`:                            "spec.rules[0].types[1]: the rule permits nothing with a Zone: it belongs to no mesh and no namespace: leave out meshes",
		`{verbs: [back-up], types: [Server], meshes: [default], names: [a]}`:                        "leave out meshes, names",
		`{verbs: [assign], types: [Workload], namespaces: [payments]}`:                              "leave out namespaces",
		`{verbs: [assign], types: [MeshTimeout]}`:                                                   "spec.rules[0].types[0]: the rule permits nothing with a MeshTimeout: none of its verbs applies to it|spec.rules[0].verbs[0]: the verb assign applies to none",
		`{verbs: [read, rotate], types: [MeshTimeout]}`:                                             "spec.rules[0].verbs[1]: the verb rotate applies to none of the types",
		`{verbs: [read], types: [MeshTimeout], names: ["a", "Not A Name"]}`:                         `spec.rules[0].names[1]: "Not A Name" cannot be a name`,
		`{verbs: [read], types: [MeshTimeout, ServiceAccount]}`:                                     "spec.rules[0].types[1]",
	} {
		got := roleWarnings(roleOf(t, rule))
		wants := strings.Split(want, "|")
		if want == "" {
			wants = nil
		}
		if len(got) != len(wants) {
			t.Errorf("%s: %q, want %q", rule, got, wants)
			continue
		}
		for i := range wants {
			if !strings.Contains(got[i], wants[i]) {
				t.Errorf("%s: %q, want %q", rule, got[i], wants[i])
			}
		}
	}
}

// TestBuiltInVerbs checks that each verb applies to something, and that some verb applies to each thing.
func TestBuiltInVerbs(t *testing.T) {
	for _, verb := range resources.AccessVerbs() {
		if got := roleWarnings(roleOf(t, `{verbs: [`+verb+`], types: ["*"]}`)); len(got) > 0 {
			t.Error(got)
		}
	}
	things := resources.AccessThings()
	for _, d := range resources.Descriptors() {
		things = append(things, string(d.Type))
	}
	for _, thing := range things {
		if got := roleWarnings(roleOf(t, `{verbs: ["*"], types: [`+thing+`]}`)); len(got) > 0 {
			t.Error(got)
		}
	}
}

func roleOf(t *testing.T, rule string) *resources.Resource {
	t.Helper()
	docs, err := resources.DecodeDocuments([]byte("{type: AccessRole, name: some, spec: {rules: ["+rule+"]}}"),
		resources.DecodeOptions{})
	if err != nil {
		t.Fatal(rule, err)
	}
	if err := resources.Validate(docs[0], resources.Home{Zone: "zone-1", Alone: true}); err != nil {
		t.Fatal(rule, err)
	}
	return docs[0]
}
