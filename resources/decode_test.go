package resources

import "testing"

// TestADocumentIsItsTypedForm: the message that a document was decoded to is not decoded again.
func TestADocumentIsItsTypedForm(t *testing.T) { // it counts allocations, so it runs alone
	docs, err := DecodeDocuments([]byte(`{"type": "MeshGateway", "mesh": "default", "name": "g", "selectors": [{"match": {"kuma.io/service": "edge"}}],
		"conf": {"listeners": [{"port": 80, "protocol": "HTTP", "hostname": "*"}]}}`), DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(1, func() { // it runs once before it counts
		if docs[0].Spec.typed == nil {
			t.Error("the spec has no typed form yet")
		}
		if _, err := docs[0].Spec.decode(); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("to decode it takes %v allocations, want none", n)
	}
}
