package explain_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/explain"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

var (
	someIDs     = []string{"spiffe://a/", "spiffe://a/x", "spiffe://a/x/", "spiffe://a/x/y", "spiffe://b/x"}
	somePaths   = []string{"/", "/a", "/a/", "/a/b", "/ab", "/a:b"}
	someMethods = []string{"GET", "POST"}
)

func drawEntry() *rapid.Generator[resources.PermissionMatch] {
	return rapid.Custom(func(t *rapid.T) resources.PermissionMatch {
		var m resources.PermissionMatch
		if rapid.Bool().Draw(t, "identity") {
			m.SpiffeID = &resources.SpiffeIDMatch{
				Type:  rapid.SampledFrom([]string{resources.MatchExact, resources.MatchPrefix}).Draw(t, "kind"),
				Value: rapid.SampledFrom(append(someIDs, "spiffe://")).Draw(t, "id"),
			}
		}
		if rapid.Bool().Draw(t, "path") {
			m.Path = &resources.PathMatch{
				Type: rapid.SampledFrom([]string{resources.MatchExact, resources.MatchPrefix,
					resources.MatchRegularExpression}).Draw(t, "kind"),
				Value: rapid.SampledFrom(somePaths).Draw(t, "value"),
			}
		}
		if m.SpiffeID == nil && m.Path == nil || rapid.Bool().Draw(t, "method") {
			m.Method = rapid.SliceOfNDistinct(rapid.SampledFrom(someMethods), 1, 2, rapid.ID).Draw(t, "methods")
		}
		return m
	})
}

// TestShadowedEntriesDecideNothing checks that removing an entry that lint calls shadowed or duplicate changes no
// verdict.
func TestShadowedEntriesDecideNothing(t *testing.T) {
	found := 0
	rapid.Check(t, func(rt *rapid.T) {
		list := func(name string) []resources.PermissionMatch { return rapid.SliceOfN(drawEntry(), 0, 3).Draw(rt, name) }
		conf := resources.PermissionConf{Deny: list("deny"), AllowWithShadowDeny: list("shadow"), Allow: list("allow")}
		var files []*resources.Resource
		for i, c := range []resources.PermissionConf{conf, {Deny: list("other's deny")}} {
			raw, err := json.Marshal(map[string]any{"default": c})
			if err != nil {
				t.Fatal(err)
			}
			spec, err := resources.NewSpec(resources.TypeMeshTrafficPermission, raw)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, &resources.Resource{Key: resources.Key{Type: resources.TypeMeshTrafficPermission,
				Mesh: "default", Name: fmt.Sprintf("p%d", i)}, Spec: spec})
		}
		for _, f := range explain.FromFiles(append(files, load(t, "testdata/one.yaml")...), explain.Options{}).Lint("") {
			if f.Check != explain.CheckShadowed && f.Check != explain.CheckDuplicate || !strings.Contains(f.KRI, "_p0_") {
				continue
			}
			found++
			before := matching.Rules{Items: []matching.Rule{rule("p0", conf), policyRule(t, files[1])}}
			after := matching.Rules{Items: []matching.Rule{rule("p0", withoutField(t, conf, f.Field)), before.Items[1]}}
			for _, req := range someRequests() {
				if a, b := rbac.Evaluate(before, req), rbac.Evaluate(after, req); a.Enforced.Allowed != b.Enforced.Allowed {
					rt.Fatalf("%+v: %+v: %v with it, %v without", f, req, a.Enforced.Allowed, b.Enforced.Allowed)
				}
			}
		}
	})
	if found == 0 {
		t.Error("lint found nothing, so this test saw nothing")
	}
}

func rule(name string, conf resources.PermissionConf) matching.Rule {
	return matching.Rule{Origin: resources.KRI{Short: "mtp", Mesh: "default", Name: name}, Conf: conf}
}

func policyRule(t *testing.T, r *resources.Resource) matching.Rule {
	t.Helper()
	rules := matching.NewPolicy(r, resources.DefaultSystemNamespace).Rules()
	if len(rules) != 1 {
		t.Fatalf("%d rules", len(rules))
	}
	return rules[0]
}

// withoutField removes the entry that a finding names.
func withoutField(t *testing.T, conf resources.PermissionConf, field string) resources.PermissionConf {
	t.Helper()
	var list string
	var at int
	if _, err := fmt.Sscanf(strings.NewReplacer("rules[0].default.", "", "[", " ", "]", "").Replace(field), "%s %d",
		&list, &at); err != nil {
		t.Fatalf("%s: %v", field, err)
	}
	cut := func(entries []resources.PermissionMatch) []resources.PermissionMatch {
		return append(append([]resources.PermissionMatch{}, entries[:at]...), entries[at+1:]...)
	}
	switch list {
	case "deny":
		conf.Deny = cut(conf.Deny)
	case "allow":
		conf.Allow = cut(conf.Allow)
	default:
		conf.AllowWithShadowDeny = cut(conf.AllowWithShadowDeny)
	}
	return conf
}

func someRequests() []rbac.Request {
	var out []rbac.Request
	for _, id := range append(someIDs, "spiffe://a/x/y/z") {
		for _, path := range append(somePaths, "/a%3Ab", "/a;x", "/a/b/c") {
			for _, method := range append(someMethods, "HEAD") {
				out = append(out, rbac.Request{Protocol: matching.HTTP, URISANs: []string{id}, Method: method, Path: path})
			}
		}
	}
	return out
}
