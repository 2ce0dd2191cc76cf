package rbac_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// TestAcceptedPathsCanBeEnforced checks that a path that a user may apply is one that a path normalised by Envoy can
// equal, and the reverse.
func TestAcceptedPathsCanBeEnforced(t *testing.T) {
	t.Parallel()
	pieces := rapid.SampledFrom([]string{"/", "/", "a", ".", "..", "%61", "%2e", "%7E", "%2f", "%5C", "%00", "%3a",
		"%c3", "%", "%4", ":", ";", "\"", "{", "~", "é", " ", "\x01", `\`, "%2D", "%5b"})
	rapid.Check(t, func(rt *rapid.T) {
		path := "/"
		for range rapid.IntRange(0, 5).Draw(rt, "pieces") {
			path += pieces.Draw(rt, "piece")
		}
		m := resources.PermissionMatch{Path: &resources.PathMatch{Type: resources.MatchPrefix, Value: path}}
		accepted := resources.Validate(policyOf(t, m), resources.Home{}) == nil
		if fault := rbac.Fault(&m); accepted != (fault == "") {
			rt.Fatalf("%q: accepted %v, fault %q", path, accepted, fault)
		}
		if normalised, refused := rbac.NormalizePath(path); accepted && (refused != "" || normalised != path) {
			rt.Fatalf("%q is accepted, and Envoy makes it %q %s", path, normalised, refused)
		}
	})
}

func policyOf(t *testing.T, m resources.PermissionMatch) *resources.Resource {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"default": resources.PermissionConf{Allow: []resources.PermissionMatch{m}}})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := resources.NewSpec(resources.TypeMeshTrafficPermission, raw)
	if err != nil {
		t.Fatal(err)
	}
	return &resources.Resource{Key: resources.Key{Type: resources.TypeMeshTrafficPermission, Mesh: "default",
		Name: "p"}, Spec: spec}
}
