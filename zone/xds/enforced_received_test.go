package xds

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
)

// TestReceivedFieldsThatAreCalledEnforced is the same for the confs of rules: each field that is called enforced
// changes what is sent.
func TestReceivedFieldsThatAreCalledEnforced(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join("testdata", "enforced", "received.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[resources.Type]any{}
	if err := yaml.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	for i := range receivedTypes {
		typ := receivedTypes[i].Type
		policy := func(items any) *resources.Resource {
			return testResource(resources.Key{Type: typ, Mesh: "default", Name: "p"}, nil, map[string]any{"rules": items})
		}
		items := all[typ]
		whole := sentWith(t, policy(items))
		if parts, none := resources.Unenforced(policy(items)); len(parts) > 0 || none {
			t.Errorf("%s: %q is said not to be enforced", typ, parts)
		}
		if parts, none := resources.Unenforced(policy(changed(t, items, "", "notAField"))); len(parts) == 0 || none {
			t.Errorf("%s: of a field that nobody knows is said: %q, of all: %v", typ, parts, none)
		}
		for _, field := range resources.ReceivedFields(typ) {
			if slices.Contains(alwaysThere, field) {
				continue
			}
			if bytes.Equal(whole, sentWith(t, policy(changed(t, items, field, "")))) {
				t.Errorf("%s: %s is called enforced, and without it the same is sent", typ, field)
			}
		}
	}
}

// TestConnectionRateThatIsDisabled: what a less specific policy limits is not, and a rule with matches limits nothing.
func TestConnectionRateThatIsDisabled(t *testing.T) {
	t.Parallel()
	const rate = `"connectionRate":{"num":7,"interval":"7s"}`
	with := func(rule string) []byte {
		return configWith(t, testResource(resources.Key{Type: resources.TypeMeshRateLimit, Mesh: "default", Name: "p"}, nil,
			map[string]any{"rules": []any{json.RawMessage(rule)}}))
	}
	const limited = "max_tokens: 7"
	if !bytes.Contains(with(`{"default":{"local":{"tcp":{`+rate+`}}}}`), []byte(limited)) {
		t.Error("a rate of connections configures nothing")
	}
	for _, rule := range []string{
		`{"default":{"local":{"tcp":{"disabled":true,` + rate + `}}}}`,
		`{"matches":[{"path":{"type":"Exact","value":"/a"}}],"default":{"local":{"tcp":{` + rate + `}}}}`,
	} {
		if bytes.Contains(with(rule), []byte(limited)) {
			t.Errorf("%s configures the proxy", rule)
		}
	}
}

// TestWholeFieldsThatAreCalledEnforced is the same for the confs of whole proxies: each field changes what is sent, in
// one of the confs.
func TestWholeFieldsThatAreCalledEnforced(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join("testdata", "enforced", "whole.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[resources.Type][]any{}
	if err := yaml.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	for _, typ := range append(slices.Clone(wholeTypes), resources.TypeMeshCircuitBreaker) {
		policy := func(conf any) *resources.Resource {
			return testResource(resources.Key{Type: typ, Mesh: "default", Name: "p"}, nil, map[string]any{"default": conf})
		}
		needed := map[string]bool{}
		for _, conf := range all[typ] {
			whole := sentWith(t, policy(conf))
			if parts, none := resources.Unenforced(policy(conf)); len(parts) > 0 || none {
				t.Errorf("%s: %q is said not to be enforced", typ, parts)
			}
			for _, field := range resources.ReceivedFields(typ) {
				if needed[field] {
					continue
				}
				text, err := json.Marshal(conf)
				if err != nil {
					t.Fatal(err)
				}
				var less any
				if err := json.Unmarshal(text, &less); err != nil {
					t.Fatal(err)
				}
				takeOut(less, strings.Split(field, "."))
				needed[field] = !bytes.Equal(whole, sentWith(t, policy(less)))
			}
		}
		for _, field := range resources.ReceivedFields(typ) {
			if !needed[field] && !strings.HasSuffix(field, ".type") {
				t.Errorf("%s: %s is called enforced, and without it the same is sent", typ, field)
			}
		}
	}
}

// TestReceivedTypesAreByRoute: the types whose rules become routes of inbounds are those whose matches are checked for
// that.
func TestReceivedTypesAreByRoute(t *testing.T) {
	t.Parallel()
	applied := map[resources.Type]bool{}
	for i := range receivedTypes {
		applied[receivedTypes[i].Type] = true
	}
	for _, d := range resources.Descriptors() {
		if byRoute := d.Policy != nil && d.Policy.ByRoute; byRoute != applied[d.Type] {
			t.Errorf("%s: its row in the registry has ByRoute: %v, and receivedTypes has it: %v", d.Type, byRoute, applied[d.Type])
		}
	}
}
