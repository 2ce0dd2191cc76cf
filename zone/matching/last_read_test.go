package matching

import (
	"sync"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// TestLastRead: readers of one resource get one policy, also at the same time, and a reader of its next version another one.
func TestLastRead(t *testing.T) {
	t.Parallel()
	version := func(text string) *resources.Resource {
		spec, err := resources.NewSpec(resources.TypeMeshTimeout, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return &resources.Resource{Key: resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: "one"}, Spec: spec}
	}
	var last LastRead
	first, second := version(`{"to": []}`), version(`{"to": [{"targetRef": {"kind": "Mesh"}, "default": {}}]}`)
	for _, r := range []*resources.Resource{first, second} {
		var readers sync.WaitGroup
		got := make([]*Policy, 4)
		for i := range got {
			readers.Go(func() { got[i] = last.Policy(r, "system") })
		}
		readers.Wait()
		for _, p := range got {
			if p != got[0] || p.Resource != r {
				t.Errorf("a policy of %v and of %v, want one of %v", p.Resource, got[0].Resource, r)
			}
		}
		if p := last.Policy(r, "other"); p == got[0] {
			t.Error("a reader with another namespace got the policy as the first one reads it")
		}
	}
	var none *LastRead
	one := none.Policy(first, "system")
	if another := none.Policy(first, "system"); another == one {
		t.Error("nothing keeps a policy")
	}
}
