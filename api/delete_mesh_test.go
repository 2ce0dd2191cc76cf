package api

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestWhatIsInAMesh checks that the error for a mesh that cannot be deleted names its resources, but only counts those
// that the caller may not read.
func TestWhatIsInAMesh(t *testing.T) {
	memory := store.NewMemory()
	spec, err := resources.NewSpec(resources.TypeMeshTimeout, []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	var batch store.Batch
	for i := range 8 {
		key := resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Namespace: "shop",
			Name: fmt.Sprintf("open-%d", i)}
		if i < 2 {
			key.Namespace, key.Name = "payments", fmt.Sprintf("hidden-%d", i)
		}
		batch.Ops = append(batch.Ops, store.Op{Put: &resources.Resource{Key: key, Spec: spec,
			Labels: map[string]string{resources.LabelNamespace: key.Namespace}}})
	}
	if _, err := memory.Apply(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	shop := &Reader{allows: func(a access.Action) bool { return a.Namespace == "shop" }}
	nobody := &Reader{allows: func(access.Action) bool { return false }}
	for _, tt := range []struct {
		reader *Reader
		want   []string
		hides  string
	}{
		{nil, []string{"hidden-0", "hidden-1", "3 more"}, "may not read"},
		{shop, []string{"open-2", "open-6", "1 more", "2 that you may not read"}, "hidden-"},
		{nobody, []string{"in it: 8 that you may not read"}, "open-"},
	} {
		var refused *Error
		if err := checkMeshUnused(memory.Snapshot(), "default", tt.reader); !errors.As(err, &refused) {
			t.Fatalf("it may be deleted: %v", err)
		}
		said := fmt.Sprint(refused.InvalidParameters)
		for _, want := range tt.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s does not say %q", said, want)
			}
		}
		if strings.Contains(said, tt.hides) {
			t.Errorf("%s says %q", said, tt.hides)
		}
	}
	if err := checkMeshUnused(memory.Snapshot(), "other", nobody); err != nil {
		t.Errorf("an empty mesh: %v", err)
	}
}
