package api_test

import "testing"

// TestInvalidParametersNumberTheirDocument checks that a client can find the file of a problem without parsing text,
// whether decoding, validation or a comparison with the store refused the document.
func TestInvalidParametersNumberTheirDocument(t *testing.T) {
	const fine = "{type: MeshTrafficPermission, mesh: default, name: fine, spec: {default: {}}}\n---\n"
	for name, document := range map[string]string{
		"decoding":   "{type: MeshTrafficPermission, mesh: default, name: a, spec: {nope: 1}}",
		"validation": "{type: MeshTrafficPermission, mesh: default, name: a, spec: {default: {}, rules: [{default: {}}]}}",
		"the store":  "{type: MeshTrafficPermission, mesh: nowhere, name: a, spec: {default: {}}}",
	} {
		t.Run(name, func(t *testing.T) {
			f := global(t)
			for body, want := range map[string]int{document: 1, fine + document: 2} {
				_, e := f.call(t, "POST", "/_batch", "---\n"+body)
				if e == nil || len(e.InvalidParameters) == 0 {
					t.Fatalf("want a refusal with its field, got %v", e)
				}
				for _, p := range e.InvalidParameters {
					if p.Document != want {
						t.Errorf("%s: document %d, want %d", p.Field, p.Document, want)
					}
				}
			}
		})
	}
	_, e := global(t).call(t, "GET", "/meshtimeouts?size=-1", "")
	if e == nil || len(e.InvalidParameters) != 1 || e.InvalidParameters[0].Document != 0 {
		t.Errorf("a query's field belongs to no document, got %+v", e)
	}
}
