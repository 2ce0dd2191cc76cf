package explain_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/explain"
)

// TestPatchesAreNamed: answers name the patches that may let in whom permissions deny, and warn of the others of a proxy
// that permissions open: they may refuse more.
func TestPatchesAreNamed(t *testing.T) {
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
	const unknown = "permissions allow it; whether the proxy refuses it by a patch is unknown: "
	if want := unknown + "kri_mpp_default_local__ordinary_"; !answer.Allowed() || !slices.Contains(answer.Warnings, want) {
		t.Errorf("%s with %q, want %q", answer.Verdict, answer.Warnings, want)
	}
	denied := q
	denied.From = "spiffe://elsewhere/x"
	if answer, err := explain.FromFiles(all, explain.Options{}).Explain(denied); err != nil || answer.Allowed() ||
		slices.ContainsFunc(answer.Warnings, func(w string) bool { return strings.HasPrefix(w, unknown) }) {
		t.Errorf("what is denied warns of patches that only refuse: %+v, %v", answer, err)
	}
	hidden := explain.FromFiles(all, explain.Options{}).ForReader(func(r *resources.Resource) bool { return r.Type != resources.TypeMeshProxyPatch })
	if answer, err = hidden.Explain(q); err != nil || !slices.Equal(answer.Unguarded, []string{explain.Hidden}) {
		t.Errorf("to who may not read it: %q, %v", answer.Unguarded, err)
	}
}
