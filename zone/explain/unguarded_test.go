package explain_test

import (
	"slices"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/explain"
)

// TestUnguardedPatchesAreNamed: answers name the patches that may let in whom permissions deny, and no others.
func TestUnguardedPatchesAreNamed(t *testing.T) {
	docs, err := resources.DecodeDocuments([]byte(`
{type: MeshProxyPatch, mesh: default, name: open, labels: {kuma.io/origin: zone, kuma.io/zone: local, causeway.io/unguarded: "true"}, spec: {default: {appendModifications: [{cluster: {operation: Remove}}]}}}
---
{type: MeshProxyPatch, mesh: default, name: ordinary, labels: {kuma.io/origin: zone, kuma.io/zone: local}, spec: {default: {appendModifications: [{cluster: {operation: Remove}}]}}}
---
{type: MeshProxyPatch, mesh: default, name: elsewhere, labels: {kuma.io/origin: zone, kuma.io/zone: other, causeway.io/unguarded: "true"}, spec: {default: {appendModifications: [{cluster: {operation: Remove}}]}}}
---
{type: MeshProxyPatch, mesh: default, name: others, labels: {kuma.io/origin: zone, kuma.io/zone: local, causeway.io/unguarded: "true"}, spec: {targetRef: {kind: Dataplane, name: nobody}, default: {appendModifications: [{cluster: {operation: Remove}}]}}}
`), resources.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	q := explain.Query{To: "backend-1", Inbound: "http-port", From: td + "default/sa/frontend", Path: "/x"}
	all := append(load(t, "testdata/backend.yaml"), docs...)
	answer, err := explain.FromFiles(all, explain.Options{}).Explain(q)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"kri_mpp_default_local__open_"}; !slices.Equal(answer.Unguarded, want) {
		t.Errorf("names %q, want %q", answer.Unguarded, want)
	}
	hidden := explain.FromFiles(all, explain.Options{}).ForReader(func(r *resources.Resource) bool { return r.Type != resources.TypeMeshProxyPatch })
	if answer, err = hidden.Explain(q); err != nil || !slices.Equal(answer.Unguarded, []string{explain.Hidden}) {
		t.Errorf("to who may not read it: %q, %v", answer.Unguarded, err)
	}
}
