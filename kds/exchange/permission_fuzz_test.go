package exchange

import (
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// FuzzPlainPermission checks that a permission that counts as plain already would be neither changed nor refused.
func FuzzPlainPermission(f *testing.F) {
	for _, spec := range []string{
		`{}`, `{"rules":[]}`, `{"rules":[{}]}`, `{"rules":[{"default":{}}]}`, `{"rules":[{"default":{"allow":[]}}]}`,
		`{"rules":null}`,
		`{"rules":[{"default":{"allow":[{"spiffeID":{"type":"Exact","value":"spiffe://a/b"}}]}}],"targetRef":{"kind":"Mesh"}}`,
		`{"rules":[{"default":{"allow":[{"spiffeId":{"type":"Exact","value":"spiffe://a/b"}}]}}]}`,
		`{"rules":[{"default":{"deny":[{"path":{"type":"Exact","value":"/"}}]}}]}`,
		`{"rules":[{"default":{"allow":[{"path":null}]}}]}`,
		`{"rules":[{"default":{"allow":[{"method":"GET","sni":{"type":"Exact","value":"a"}}]}}]}`,
		`{"rules":[{"default":{"allow":[null]}}]}`,
		`{"default":{"allow":[{}]}}`, `{"default":null,"rules":[{"default":{"allow":[{}]}}]}`,
		`{"from":[{}],"rules":[{"default":{"allow":[{}]}}]}`,
		`{"rules":[{"default":{"allow":[{}],"deny":[]}}]}`, `{"rules":[{"default":{"allow":[{"Path":{}}]}}]}`,
		`{"rules":[{"default":{"allow":{}}}]}`,
		`{"Rules":[{"Default":{"allow":[{}]}}]}`, `{"rules":[{"Default":{"allow":[{}]}}]}`,
		`{"rule\u017f":[{"default":{"allow":[{}]}}]}`,
		`{"ruleſ":[{"default":{"allow":[{}]}}]}`, `{"rules":[{"default":{"allow":[{}]}}],"Rules":[]}`,
		`{"rules":[],"rules":[{"default":{"allow":[{}]}}]}`,
		`{"rules":[null]}`, `{"rules":[{"default":null}]}`, `{"rules":[{"default":{"allow":null}}]}`,
		`{"from":null,"rules":[{"default":{"allow":[{}]}}]}`,
		`{"rules":[{"default":{"allow":[{}]},"matches":[{"spiffeId":{}}]}]}`,
	} {
		f.Add([]byte(spec))
	}
	d, _ := resources.Lookup(resources.TypeMeshTrafficPermission)
	f.Fuzz(func(t *testing.T, raw []byte) {
		spec, err := resources.NewSpec(d.Type, raw)
		if err != nil || !plainAlready(spec.JSON()) {
			return
		}
		if out, err := rewritePlain(d, spec.JSON()); err != nil || string(out) != string(spec.JSON()) {
			t.Errorf("%s was taken to be plain, and becomes %s, %v", spec.JSON(), out, err)
		}
	})
}
