package inspect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// TestLayoutReadsTheMeshOnce: the layout of a Dataplane with many outbounds by tags reads the Dataplanes of its mesh
// once, and not for each outbound. It counts allocations, so it runs alone.
func TestLayoutReadsTheMeshOnce(t *testing.T) {
	const outbounds, others = 100, 100
	s := store.NewMemory()
	put := func(name, networking string) *resources.Resource {
		t.Helper()
		spec, err := resources.NewSpec(resources.TypeDataplane, []byte(`{"networking":{"address":"192.0.2.1",`+networking+`}}`))
		if err != nil {
			t.Fatal(err)
		}
		r := &resources.Resource{Key: resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: name}, Spec: spec,
			Labels: map[string]string{resources.LabelZone: "zone-1"}}
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: r}}}); err != nil {
			t.Fatal(err)
		}
		return r
	}
	var list []string
	for i := range outbounds {
		list = append(list, fmt.Sprintf(`{"port":%d,"tags":{"kuma.io/service":"s%d"}}`, 10000+i, i))
	}
	caller := put("caller", `"outbound":[`+strings.Join(list, ",")+`]`)
	for i := range others {
		put(fmt.Sprintf("p%d", i), fmt.Sprintf(`"inbound":[{"port":80,"protocol":"http","tags":{"kuma.io/service":"s%d"}}]`, i))
	}
	proxy, err := matching.NewProxy(caller)
	if err != nil {
		t.Fatal(err)
	}
	one := &asked{view: newView(&Config{Store: s}, s.Snapshot(), "default", nil), resource: caller, proxy: proxy,
		left: newLeftOut(nil)}
	if got := one.addOutbounds(Layout{}); len(got.Outbounds) != outbounds || len(got.Warnings) > 0 {
		t.Fatalf("%d outbounds, warnings %q", len(got.Outbounds), got.Warnings)
	}
	perRead := testing.AllocsPerRun(10, func() { _, _ = matching.NewProxy(caller) })
	if made := testing.AllocsPerRun(1, func() { one.addOutbounds(Layout{}) }); made > outbounds*others*perRead/4 {
		t.Errorf("%.0f allocations for %d outbounds in a mesh of %d Dataplanes", made, outbounds, others)
	}
}
