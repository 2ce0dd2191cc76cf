package api

import (
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestInsightsOfAListAreThoseOfItsResources: a list of one mesh or one namespace reads no insights of others, and a list that
// shows nothing, as to a caller who may read nothing, reads none.
func TestInsightsOfAListAreThoseOfItsResources(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	spec, err := resources.NewSpec(resources.TypeDataplaneInsight, []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []resources.Key{{Mesh: "a", Name: "x"}, {Mesh: "b", Name: "x"}, {Mesh: "b", Namespace: "n", Name: "x"}} {
		key.Type = resources.TypeDataplaneInsight
		if _, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: &resources.Resource{Key: key, Spec: spec}}}}); err != nil {
			t.Fatal(err)
		}
	}
	v, namespace := view{stored: s.Snapshot(), live: store.NewMemory().Snapshot()}, "n"
	for _, c := range []struct {
		query store.Query
		want  int
	}{
		{store.Query{}, 3}, {store.Query{Mesh: "b"}, 2}, {store.Query{Mesh: "b", Namespace: &namespace}, 1}, {store.Query{Mesh: "c"}, 0},
	} {
		c.query.Type = resources.TypeDataplane
		all := v.insightsOf(c.query)
		if len(all.rest) != 0 {
			t.Errorf("%+v: %d insights are read before anybody asks", c.query, len(all.rest))
		}
		if all.of(&resources.Resource{}); len(all.rest) != c.want {
			t.Errorf("%+v: %d insights, want %d", c.query, len(all.rest), c.want)
		}
	}
}
