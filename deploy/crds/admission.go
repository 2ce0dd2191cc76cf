package main

import (
	"fmt"
	"strings"

	"github.com/causeway-mesh/causeway/kubernetes"
	"github.com/causeway-mesh/causeway/resources"
)

// admission returns checks of a user's object, in CEL, that need no server: what the schemas cannot express, or must
// not, since the copies that servers write come from peers with looser rules.
func admission() []object {
	out := make([]object, 0, 4)
	for _, p := range []struct {
		name    string
		plurals []string
		rules   []any
	}{
		{"policies.causeway.io", plurals(func(d *resources.Descriptor) bool { return d.Policy != nil }), policyRules()},
		{"permissions.causeway.io", []string{"meshtrafficpermissions"}, permissionRules()},
	} {
		out = append(out, object{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
			"metadata": object{"name": p.name, "labels": partOf(nil)},
			"spec": object{
				// A rule that fails to run refuses nothing: the servers' webhooks check everything.
				"failurePolicy": "Ignore",
				"matchConstraints": object{"resourceRules": []any{object{
					"apiGroups": []string{"kuma.io"}, "apiVersions": []string{"v1alpha1"}, "resources": p.plurals,
					"operations": []string{"CREATE", "UPDATE"}}}},
				"matchConditions": []any{
					object{"name": "not-a-copy", "expression": "!('causeway.io/copy' in object.metadata.?labels.orValue({}))"},
					object{"name": "not-on-its-way-out", "expression": "!has(object.metadata.deletionTimestamp)"},
				},
				"validations": p.rules,
			},
		}, object{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
			"metadata": object{"name": p.name, "labels": partOf(nil)},
			"spec":     object{"policyName": p.name, "validationActions": []string{"Deny"}},
		})
	}
	return out
}

func plurals(which func(*resources.Descriptor) bool) []string {
	var out []string
	for _, k := range kubernetes.Kinds() {
		if d, ok := resources.Lookup(k.Type); ok && which(d) {
			out = append(out, k.Plural)
		}
	}
	return out
}

func policyRules() []any {
	return []any{
		knownFields("object.?spec.orValue({})", "spec", "targetRef", "to", "from", "rules", "default"),
		knownFields("object.?spec.?targetRef.orValue({})", "spec.targetRef", "kind", "name", "namespace", "labels", "tags", "mesh",
			"proxyTypes", "sectionName"),
		object{
			"expression": "has(object.spec) && ['to', 'from', 'rules'].exists(l, l in object.spec && size(object.spec[l]) > 0) || " +
				"'default' in object.?spec.orValue({})",
			"message": "spec is empty: give it rules, to, from or default, as the type has them",
		},
		object{
			"expression": "!(has(object.spec) && has(object.spec.targetRef) && has(object.spec.targetRef.name) && " +
				"size(object.spec.targetRef.?labels.orValue({})) > 0)",
			"message": "spec.targetRef.labels cannot be combined with name: use one of them",
		},
	}
}

func permissionRules() []any {
	lists := []string{"deny", "allowWithShadowDeny", "allow"}
	entry := []string{"spiffeId", "spiffeID", "sni", "path", "method"}
	rules := []any{
		object{
			"expression": "size(object.?spec.?rules.orValue([])) <= 1",
			"message":    "spec.rules has more than one item: a MeshTrafficPermission has no matches, so put all entries into one default",
		},
	}
	for _, at := range [][2]string{
		{"object.?spec.?default.orValue({})", "spec.default"},
		{"object.?spec.?rules[?0].?default.orValue({})", "spec.rules[0].default"},
	} {
		rules = append(rules, knownFields(at[0], at[1], lists...))
		for _, list := range lists {
			rules = append(rules, object{
				"expression": fmt.Sprintf("%s.?%s.orValue([]).all(e, e.all(f, f in %s))", at[0], list, celList(entry)),
				"message":    fmt.Sprintf("%s.%s: an entry has an unknown field: want spiffeId, sni, path or method", at[1], list),
			})
		}
	}
	return rules
}

// knownFields refuses unknown fields of an object. CEL lists a map by its keys.
func knownFields(at, path string, names ...string) object {
	return object{
		"expression": fmt.Sprintf("%s.all(f, f in %s)", at, celList(names)),
		"messageExpression": fmt.Sprintf("'%s.' + %s.filter(f, !(f in %s))[0] + ': unknown field, want %s'", path, at,
			celList(names), strings.Join(names, ", ")),
	}
}

func celList(names []string) string { return "['" + strings.Join(names, "', '") + "']" }
