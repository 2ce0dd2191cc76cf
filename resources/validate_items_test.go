package resources_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// TestPoliciesHaveFewItems: each list of a policy has a limit, and one more item is refused with the list's name.
func TestPoliciesHaveFewItems(t *testing.T) {
	t.Parallel()
	items := map[string]string{
		"to":    `{"targetRef":{"kind":"Mesh"},"default":{"http":{"requestTimeout":"1s"}}}`,
		"from":  `{"targetRef":{"kind":"Mesh"},"default":{"http":{"requestTimeout":"1s"}}}`,
		"rules": `{"default":{"http":{"requestTimeout":"1s"}}}`,
	}
	home := resources.Home{Zone: "zone-1", SystemNamespace: resources.DefaultSystemNamespace}
	for list, item := range items {
		of := func(n int) *resources.Resource {
			spec, err := resources.NewSpec(resources.TypeMeshTimeout,
				json.RawMessage(`{"`+list+`":[`+strings.Repeat(item+",", n-1)+item+`]}`))
			if err != nil {
				t.Fatal(err)
			}
			return home.Labelled(&resources.Resource{Key: resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: "p"},
				Spec: spec})
		}
		if err := resources.Validate(of(resources.MaxPolicyItems), home); err != nil {
			t.Errorf("%s: %v", list, err)
		}
		most := of(resources.MaxPolicyItems + 1)
		if err := resources.Validate(most, home); err == nil || !strings.Contains(err.Error(), "spec."+list+": has 1001 items, want at most 1000") {
			t.Errorf("%s: %v", list, err)
		}
	}
}
