package inspect

import (
	"fmt"
	"iter"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
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

// stored writes a resource of the zone.
func stored(t *testing.T, s store.Store, typ resources.Type, name, text string) *resources.Resource {
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

// TestAMeshGatewayWrittenAgainLooksAtOneDataplane: the first write of a MeshGateway looks for a Dataplane that serves
// it, and the next ones only at that, as long as it does. In a mesh that has too many, none is looked at.
func TestAMeshGatewayWrittenAgainLooksAtOneDataplane(t *testing.T) {
	t.Parallel()
	const dataplanes = 100
	s := store.NewMemory()
	put := func(typ resources.Type, name, text string) *resources.Resource { return stored(t, s, typ, name, text) }
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
		{"the first write", dataplanes - 10, 0, func() {}},
		{"the second", 0, 0, func() {}},
		{"one when another Dataplane serves it", 5, 0, func() { tagged(dataplanes-11, "none"); tagged(4, "g89") }},
		{"one after that", 0, 0, func() {}},
		{"one when none does", dataplanes, 1, func() { tagged(4, "none") }},
		{"one in a mesh of more than are looked at", 0, 0, func() {
			for i := dataplanes; i <= mostLookedAt; i++ {
				tagged(i, "none")
			}
		}},
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

// TestAPolicyForOneOfManyLooksAtNone: of a policy that names its proxies by no label, nothing would be said in a mesh
// with more Dataplanes than are looked at.
func TestAPolicyForOneOfManyLooksAtNone(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	h := &handlers{views: &views{config: &Config{Store: s, Zone: "zone-1"}}}
	for i := range mostLookedAt + 1 {
		stored(t, s, resources.TypeDataplane, fmt.Sprintf("e%d", i), `{"networking":{"address":"192.0.2.1"}}`)
		policy := stored(t, s, resources.TypeMeshRetry, "none", fmt.Sprintf(
			`{"targetRef":{"kind":"MeshGateway","name":"g%d"},"to":[{"targetRef":{"kind":"Mesh"},"default":{"http":{"numRetries":1}}}]}`, i))
		if i > 1 && i < mostLookedAt-1 {
			continue
		}
		looked := 0
		said := h.effectTexts(counted{s.Snapshot(), &looked}, matching.NewPolicy(policy, ""), nil)
		if i < mostLookedAt && (looked != i+1 || len(said) != 1) || i == mostLookedAt && (looked != 0 || len(said) != 0) {
			t.Errorf("of %d Dataplanes %d are looked at, and it says %q", i+1, looked, said)
		}
	}
}
