package resources

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
)

// TestAProxyPatchIsReadOnce: what was read when a MeshProxyPatch was written is what its readers get, as long as it is the
// same conf, judged the same, and somebody has it.
func TestAProxyPatchIsReadOnce(t *testing.T) { // it collects garbage, so it runs alone
	conf := func(name string) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"appendModifications":[{"cluster":{"operation":"Add","value":"name: %s\nconnectTimeout: 1s\ntype: STATIC\n"}}]}`, name))
	}
	written := func() *Resource {
		docs, err := DecodeDocuments(fmt.Appendf(nil, `{"type": "MeshProxyPatch", "mesh": "default", "name": "p", "spec": {"default": %s}}`, conf("a")),
			DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Home{Zone: "zone-1", Alone: true}.Accept(docs[0])
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := written()
	known := r.Spec.patch.Load()
	if known == nil || string(known.conf) != string(conf("a")) {
		t.Fatal("the spec does not know what was read when it was written")
	}
	first, wrong, err := ReadProxyPatch(r, conf("a"), true)
	if err != nil || len(wrong) > 0 {
		t.Fatal(wrong, err)
	}
	if again, _, _ := ReadProxyPatch(r, conf("a"), true); again != first {
		t.Error("the same conf is read again while somebody has it")
	}
	if other, _, _ := ReadProxyPatch(r, conf("a"), false); other == first {
		t.Error("what was judged as an ordinary patch counts as read for an unguarded one")
	}
	if other, _, _ := ReadProxyPatch(r, conf("b"), false); other == nil || other == first {
		t.Error("another conf is the one that was read last")
	}
	if _, wrong, err := ReadProxyPatch(r, json.RawMessage(`{"appendModifications":[]}`), false); len(wrong) != 1 || err != nil {
		t.Errorf("a conf with a problem has the problems %v, %v", wrong, err)
	}
	if _, _, err := ReadProxyPatch(r, json.RawMessage(`{"appendModifications":1}`), false); err == nil {
		t.Error("a conf of another form is read")
	}
	runtime.KeepAlive(first)
	if r = written(); r.Spec.Undecoded().patch.Load() != nil {
		t.Error("a spec without typed forms has what was read")
	}
	runtime.GC()
	if r.Spec.patch.Load().edits.Value() != nil {
		t.Error("the spec keeps what nobody uses")
	}
}
