package inspect

import (
	"fmt"
	"iter"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// counted is a snapshot that counts the Dataplanes that it lists.
type counted struct {
	store.Snapshot
	listed *int
}

func (c counted) List(q store.Query) iter.Seq[*resources.Resource] {
	return func(yield func(*resources.Resource) bool) {
		for r := range c.Snapshot.List(q) {
			if r.Type == resources.TypeDataplane {
				*c.listed++
			}
			if !yield(r) {
				return
			}
		}
	}
}

// TestAMeshGatewayWrittenAgainLooksAtOneDataplane: the first write of a MeshGateway looks for a Dataplane that serves
// it, and the next ones only at that, as long as it does.
func TestAMeshGatewayWrittenAgainLooksAtOneDataplane(t *testing.T) {
	t.Parallel()
	const dataplanes = 100
	s := store.NewMemory()
	put := func(typ resources.Type, name, text string) *resources.Resource {
		t.Helper()
		spec, err := resources.NewSpec(typ, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		r := &resources.Resource{Key: resources.Key{Type: typ, Mesh: "default", Name: name}, Spec: spec,
			Labels: map[string]string{resources.LabelZone: "zone-1"}}
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: r}}}); err != nil {
			t.Fatal(err)
		}
		return r
	}
	tagged := func(i int, of string) {
		put(resources.TypeDataplane, fmt.Sprintf("e%02d", i), fmt.Sprintf(
			`{"networking":{"address":"192.0.2.1","gateway":{"type":"BUILTIN","tags":{"kuma.io/service":%q}}}}`, of))
	}
	for i := range dataplanes {
		tagged(i, fmt.Sprintf("g%02d", i))
	}
	h := &handlers{views: &views{config: &Config{Store: s, Zone: "zone-1"}}}
	for _, step := range []struct {
		what         string
		looked, said int
		before       func()
	}{
		{"the first write", dataplanes + dataplanes - 10, 0, func() {}},
		{"the second", 0, 0, func() {}},
		{"one when another Dataplane serves it", dataplanes + 5, 0, func() { tagged(dataplanes-11, "none"); tagged(4, "g89") }},
		{"one after that", 0, 0, func() {}},
		{"one when none does", 2 * dataplanes, 1, func() { tagged(4, "none") }},
	} {
		step.before()
		gateway := put(resources.TypeMeshGateway, "edge", `{"selectors":[{"match":{"kuma.io/service":"g89"}}]}`)
		looked := 0
		said := h.gatewayTexts(counted{s.Snapshot(), &looked}, gateway)
		if looked != step.looked || len(said) != step.said {
			t.Errorf("%s looks at %d Dataplanes, want %d, and says %q", step.what, looked, step.looked, said)
		}
	}
}
