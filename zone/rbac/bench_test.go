package rbac_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// manyIdentities returns n allow entries with exact identities, in rules of fifty.
func manyIdentities(n int) matching.Rules {
	var confs []resources.PermissionConf
	for i := range n {
		if i%50 == 0 {
			confs = append(confs, resources.PermissionConf{})
		}
		last := &confs[len(confs)-1]
		last.Allow = append(last.Allow, resources.PermissionMatch{SpiffeID: &resources.SpiffeIDMatch{
			Type: resources.MatchExact, Value: fmt.Sprintf("spiffe://default.zone-1.mesh.local/ns/ns-%d/sa/client-%d", i%100, i),
		}})
	}
	return rulesOf(confs...)
}

var benchSizes = []int{10, 100, 1000, 10000}

// TestCompiledIsNoLarger checks that for rules on identity alone, the maps are not larger than the list.
func TestCompiledIsNoLarger(t *testing.T) {
	t.Parallel()
	for _, n := range benchSizes {
		rules := manyIdentities(n)
		list, compiled := proto.Size(rbac.List.HTTPFilter(rules)), proto.Size(rbac.Compiled.HTTPFilter(rules))
		if compiled > list {
			t.Errorf("%d identities: the list has %d bytes, the maps %d", n, list, compiled)
		}
	}
}

// BenchmarkFilter measures generating one HTTP filter, and its size.
func BenchmarkFilter(b *testing.B) {
	for _, form := range forms {
		for _, n := range benchSizes {
			rules := manyIdentities(n)
			b.Run(fmt.Sprintf("%s/%d", form, n), func(b *testing.B) {
				size := 0
				b.ReportAllocs()
				for b.Loop() {
					size = proto.Size(form.HTTPFilter(rules))
				}
				b.ReportMetric(float64(size), "config-bytes")
			})
		}
	}
}
