package inspect

import (
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestFirstComparisonIsADoubt has a zone that lacks the whole list of two types: answers about one of them, or about any,
// say so, and others do not.
func TestFirstComparisonIsADoubt(t *testing.T) {
	since := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	lacks := []resources.Type{resources.TypeMeshTimeout, resources.TypeMeshRetry}
	d := &Doubts{Status: store.NewMemory(), Started: since, Comparing: func(of resources.Type) (time.Time, []resources.Type) {
		var types []resources.Type
		for _, t := range lacks {
			if of == "" || of == t {
				types = append(types, t)
			}
		}
		return since, types
	}}
	const one = "the global is connected and has not sent its whole list of MeshRetry since 2026-11-26T12:00:00Z: whether it has newer resources is unknown"
	if got := d.Outdates(true, resources.TypeMeshRetry); len(got) != 1 || got[0] != one {
		t.Errorf("of one type: %q", got)
	}
	if got := d.Outdates(true, ""); len(got) != 1 || !strings.Contains(got[0], "whole lists of 2 types, MeshTimeout among them since ") {
		t.Errorf("of any: %q", got)
	}
	if got := append(d.Outdates(true, resources.TypeMesh), d.Outdates(false, "")...); len(got) > 0 {
		t.Errorf("of what is here: %q", got)
	}
	verdict := strings.Join(d.Of(resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: "dp"}, "zone-1"), "; ")
	if !strings.Contains(verdict, "whether it has newer policies is unknown") {
		t.Errorf("a verdict says %q", verdict)
	}
	if lacks = nil; len(d.Outdates(true, "")) > 0 {
		t.Error("all is compared, and there is a doubt")
	}
}
