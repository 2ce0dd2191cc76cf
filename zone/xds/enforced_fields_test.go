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

// alwaysThere are fields without which something else decides what is sent: they change nothing here.
var alwaysThere = []string{"backends.type", "outlierDetection.disabled", "loadBalancer.roundRobin",
	"loadBalancer.random", "grpc.disabled", "local.tcp.disabled"}

// TestFieldsThatAreCalledEnforced holds what servers say of fields of confs against what proxies are sent: of a conf
// with all of them, each changes it when it is taken out, and one that is not among them changes nothing and is said to
// be left out.
func TestFieldsThatAreCalledEnforced(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join("testdata", "enforced", "fields.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[resources.Type]any{}
	if err := yaml.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	for typ, items := range all {
		policy := func(items any) *resources.Resource {
			return testResource(resources.Key{Type: typ, Mesh: "default", Name: "p"}, nil, map[string]any{"to": items})
		}
		whole := sentWith(t, policy(items))
		if whole == nil {
			t.Fatalf("%s: nothing was built", typ)
		}
		if parts, none := resources.Unenforced(policy(items)); len(parts) > 0 || none {
			t.Errorf("%s: %q is said not to be enforced", typ, parts)
		}
		if !bytes.Equal(whole, sentWith(t, policy(changed(t, items, "", "notAField")))) {
			t.Errorf("%s: a field that nobody knows changes what is sent", typ)
		}
		if parts, none := resources.Unenforced(policy(changed(t, items, "", "notAField"))); len(parts) == 0 || none ||
			!strings.Contains(parts[0], "notAField") {
			t.Errorf("%s: of a field that nobody knows is said: %q, of all: %v", typ, parts, none)
		}
		for _, field := range resources.ConfFields(typ) {
			less := changed(t, items, field, "")
			if slices.Contains(alwaysThere, field) {
				continue
			}
			if bytes.Equal(whole, sentWith(t, policy(less))) {
				t.Errorf("%s: %s is called enforced, and without it the same is sent", typ, field)
			}
		}
	}
}

// TestValuesThatAreCalledEnforced: what was stored, or came from a peer, with a value that means nothing to proxies is
// said to be left out, for each field that may have only some. Names and values of headers may be any.
func TestValuesThatAreCalledEnforced(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join("testdata", "enforced", "fields.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []resources.Type{resources.TypeMeshRetry, resources.TypeMeshCircuitBreaker,
		resources.TypeMeshHealthCheck} {
		for _, field := range resources.ConfFields(typ) {
			last := field[strings.LastIndexByte(field, '.')+1:]
			if slices.Contains([]string{"name", "value", "serviceName", "authority", "send", "receive"}, last) {
				continue // "nonsense" is one
			}
			all := map[resources.Type]any{}
			if err := yaml.Unmarshal(raw, &all); err != nil {
				t.Fatal(err)
			}
			misspell(all[typ].([]any)[0].(map[string]any)["default"], strings.Split(field, "."))
			policy := testResource(resources.Key{Type: typ, Mesh: "default", Name: "p"}, nil, map[string]any{"to": all[typ]})
			if parts, _ := resources.Unenforced(policy); len(parts) != 1 || !strings.Contains(parts[0], last) ||
				!strings.Contains(parts[0], "nonsense") {
				t.Errorf("%s: of a %s that is nonsense is said: %q", typ, field, parts)
			}
		}
	}
}

// misspell gives a field a value that it cannot have, wherever it is below lists.
func misspell(at any, path []string) {
	switch v := at.(type) {
	case []any:
		for _, item := range v {
			misspell(item, path)
		}
	case map[string]any:
		if len(path) > 1 {
			misspell(v[path[0]], path[1:])
		} else if _, isList := v[path[0]].([]any); isList {
			v[path[0]] = []any{"nonsense"}
		} else {
			v[path[0]] = "nonsense"
		}
	}
}

// TestConfOfOnlyUnknownFieldsIsNotEnforced: such a policy is stored, and configures nothing.
func TestConfOfOnlyUnknownFieldsIsNotEnforced(t *testing.T) {
	t.Parallel()
	for typ, conf := range map[resources.Type]string{
		resources.TypeMeshRetry:          `{"http":{"numRetrys":3},"htp":{"numRetries":3}}`,
		resources.TypeMeshCircuitBreaker: `{"connectionLimit":{"maxConnections":3}}`,
	} {
		to := []any{map[string]any{"targetRef": map[string]any{"kind": "Mesh"}, "default": json.RawMessage(conf)}}
		policy := testResource(resources.Key{Type: typ, Mesh: "default", Name: "p"}, nil, map[string]any{"to": to})
		parts, none := resources.Unenforced(policy)
		if len(parts) == 0 || !none || !strings.Contains(parts[0], "spec.to[0].default.") ||
			!strings.Contains(parts[0], "did you mean") {
			t.Errorf("%s: of %s is said: %q, of all: %v", typ, conf, parts, none)
		}
	}
}

// changed is a copy of items without a field, or with another one beside the first of each conf.
func changed(t *testing.T, items any, without, with string) any {
	t.Helper()
	raw, err := json.Marshal(items)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	confs, found := []any{}, false
	for _, item := range out {
		if rules, ok := item["rules"].([]any); ok {
			confs = append(confs, rules...)
		} else {
			confs = append(confs, item["default"])
		}
	}
	for _, conf := range confs {
		if with != "" {
			conf.(map[string]any)[with] = 7
		}
		found = takeOut(conf, strings.Split(without, ".")) || found
	}
	if without != "" && !found {
		t.Errorf("testdata/enforced/fields.yaml has no %s", without)
	}
	return out
}

// takeOut removes a field wherever it is below lists.
func takeOut(at any, path []string) (found bool) {
	switch v := at.(type) {
	case []any:
		for _, item := range v {
			found = takeOut(item, path) || found
		}
	case map[string]any:
		if len(path) > 1 {
			return takeOut(v[path[0]], path[1:])
		}
		_, found = v[path[0]]
		delete(v, path[0])
	}
	return found
}

// TestMatchesThatRoutesCannotTell: a match that a peer narrows down by what routes do not see holds for nothing, and is
// a problem.
func TestMatchesThatRoutesCannotTell(t *testing.T) {
	t.Parallel()
	for _, match := range []string{`{"path":{"type":"Exact","value":"/a"},"headers":[{"name":"a","value":"b"}]}`,
		`{"sni":{"type":"Exact","value":"a"}}`} {
		rules := []any{map[string]any{
			"matches": []any{json.RawMessage(match)},
			"default": json.RawMessage(`{"http":[{"abort":{"httpStatus":418,"percentage":100}}]}`),
		}}
		policy := testResource(resources.Key{Type: resources.TypeMeshFaultInjection, Mesh: "default", Name: "p"}, nil,
			map[string]any{"rules": rules})
		if !bytes.Equal(sentWith(t, policy), sentWith(t, nil)) {
			t.Errorf("%s: configures the proxy", match)
		}
	}
}

// TestCombinations: of the rules of two types, a request takes the first of each that matches.
func TestCombinations(t *testing.T) {
	t.Parallel()
	path := func(kind, value string) *resources.PathMatch { return &resources.PathMatch{Type: kind, Value: value} }
	for _, tt := range []struct {
		a, b     *resources.PathMatch
		want     *resources.PathMatch
		possible bool
		problem  bool
	}{
		{path("Prefix", "/a"), path("Prefix", "/a/b"), path("Prefix", "/a/b"), true, false},
		{path("Prefix", "/a/b"), path("Prefix", "/a"), path("Prefix", "/a/b"), true, false},
		{path("Prefix", "/a"), path("Prefix", "/ab"), nil, false, false},
		{path("Prefix", "/"), path("Exact", "/x"), path("Exact", "/x"), true, false},
		{path("Exact", "/a"), path("Exact", "/b"), nil, false, false},
		{path("Exact", "/a1"), path("RegularExpression", "/a[0-9]"), path("Exact", "/a1"), true, false},
		{path("RegularExpression", "/a[0-9]"), path("Exact", "/b"), nil, false, false},
		{path("RegularExpression", "/a"), path("RegularExpression", "/a"), path("RegularExpression", "/a"), true, false},
		{path("RegularExpression", "/a.*"), path("Prefix", "/a"), nil, false, true},
	} {
		first := combination{path: tt.a}
		got, possible, problem := first.with(&choice{match: resources.PermissionMatch{Path: tt.b}})
		if possible != tt.possible || (problem != "") != tt.problem || possible && *got.path != *tt.want {
			t.Errorf("%v and %v: %v, possible %v, problem %q", tt.a, tt.b, got.path, possible, problem)
		}
	}
	get := combination{methods: resources.Methods{"GET", "HEAD"}}
	if got, possible, _ := get.with(&choice{match: resources.PermissionMatch{Method: resources.Methods{"POST",
		"HEAD"}}}); !possible || len(got.methods) != 1 || got.methods[0] != "HEAD" {
		t.Errorf("methods: %v, possible %v", got.methods, possible)
	}
	if _, possible, _ := get.with(&choice{match: resources.PermissionMatch{Method: resources.Methods{"POST"}}}); possible {
		t.Error("a request that is GET and POST is possible")
	}
}
