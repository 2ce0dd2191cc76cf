package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// TestPolicyFieldsAreThose checks that the page about policies has a row for exactly the fields that are enforced on
// inbounds.
func TestPolicyFieldsAreThose(t *testing.T) {
	listed := map[resources.Type]bool{}
	for _, p := range policyTypes {
		listed[p.Type] = true
		var got []string
		for _, f := range p.fields {
			got = append(got, strings.ReplaceAll(f.field, "[]", ""))
			if f.envoy == "" || f.seen == "" {
				t.Errorf("%s: %s says nothing", p.Type, f.field)
			}
		}
		slices.Sort(got)
		if want := resources.ReceivedFields(p.Type); !slices.Equal(got, want) {
			t.Errorf("%s: the page has %q, enforced are %q", p.Type, got, want)
		}
	}
	for _, p := range sentTypes {
		var got []string
		for _, f := range p.fields {
			got = append(got, strings.ReplaceAll(f.field, "[]", ""))
		}
		slices.Sort(got)
		want := resources.ConfFields(p.Type)
		switch p.Type {
		case resources.TypeMeshTimeout: // the same on both sides
			want = resources.ReceivedFields(p.Type)
		case resources.TypeMeshTCPRoute: // a rule has nothing else
			want = []string{"default.backendRefs"}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the page has %q, enforced are %q", p.Type, got, want)
		}
	}
	for _, p := range otherTypes {
		var got, want []string
		for _, f := range p.fields {
			got = append(got, f.field)
		}
		for _, f := range resources.Fields(p.Type) {
			if !strings.HasSuffix(f.Kind, "object") {
				want = append(want, f.Path)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the page has %q, its fields are %q", p.Type, got, want)
		}
	}
	for _, d := range resources.Descriptors() {
		if len(resources.ReceivedFields(d.Type)) > 0 && !listed[d.Type] {
			t.Errorf("%s has fields that are enforced on inbounds, and is not on the page", d.Type)
		}
	}
}
