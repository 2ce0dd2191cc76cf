package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// TestGatewayFieldsAreThose checks that the page has a row, or a note that it is not enforced, for exactly the fields
// of a MeshGateway that hold a value.
func TestGatewayFieldsAreThose(t *testing.T) {
	var got, want []string
	for _, f := range gatewayType.fields {
		got = append(got, f.field)
		if f.envoy == "" || f.seen == "" {
			t.Errorf("%s says nothing", f.field)
		}
	}
	got = append(got, strings.Split(gatewayType.other, ", ")...)
	all := resources.Fields(resources.TypeMeshGateway)
	for i, f := range all {
		parent := i+1 < len(all) && (strings.HasPrefix(all[i+1].Path, f.Path+".") || strings.HasPrefix(all[i+1].Path, f.Path+"[]."))
		if !parent && f.Path != "conf.listeners[].tls.options" { // an object without fields
			want = append(want, f.Path)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the page has\n%q, and there are\n%q", got, want)
	}
}
