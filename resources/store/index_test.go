package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// indexed returns a resource of one of few keys, with some of few labels.
func indexed(dice *rand.Rand) *resources.Resource {
	one := func(all ...string) string { return all[dice.IntN(len(all))] }
	r := &resources.Resource{Labels: map[string]string{}, Key: resources.Key{Type: resources.Type(one("A", "AB")),
		Mesh: one("", "m", "mm"), Namespace: one("", "n"), Name: one("x", "xy", "y")}}
	for range dice.IntN(3) {
		r.Labels[one("a", "b")] = one("", "1", "11")
	}
	return r
}

// TestIndexListsWhatIsThere: whatever changes, in resources and in their labels, every query lists what it selects, in the
// order of keys, and counts are those of the lists.
func TestIndexListsWhatIsThere(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		dice, want := rand.New(rand.NewPCG(seed, 4)), map[resources.Key]*resources.Resource{}
		var now index
		for range 100 {
			r := indexed(dice)
			old := want[r.Key]
			if dice.IntN(3) == 0 {
				if old != nil {
					now.set(old, nil)
					delete(want, r.Key)
				}
				continue
			}
			now.set(old, r)
			want[r.Key] = r
		}
		sorted := slices.SortedFunc(maps.Values(want), byKey)
		for range 50 {
			like := indexed(dice)
			q := Query{Type: like.Type, Mesh: like.Mesh, Labels: like.Labels}
			if dice.IntN(2) == 0 && q.Mesh != "" {
				q.Namespace = &like.Namespace
			}
			var got, wanted []*resources.Resource
			now.list(&q, func(r *resources.Resource) bool { got = append(got, r); return true })
			for _, r := range sorted {
				if q.selects(r) {
					wanted = append(wanted, r)
				}
			}
			if !slices.Equal(got, wanted) {
				t.Fatalf("seed %d: %+v lists %d resources, want %d", seed, q, len(got), len(wanted))
			}
			n := 0
			for key := range want {
				if key.Type == like.Type && key.Mesh == like.Mesh {
					n++
				}
			}
			if got := now.countOf(like.Type, like.Mesh); got != n {
				t.Fatalf("seed %d: counts %d %s in %q, want %d", seed, got, like.Type, like.Mesh, n)
			}
			if got := now.get(like.Key); got != want[like.Key] {
				t.Fatalf("seed %d: %v is %v, want %v", seed, like.Key, got, want[like.Key])
			}
		}
		for _, r := range sorted {
			now.set(r, nil)
		}
		if now.byKey.all.Len()+now.byLabel.all.Len()+now.counts.all.Len() > 0 {
			t.Fatalf("seed %d: something is left of what has gone", seed)
		}
	}
}

// TestAChangeThatLeavesLabelsIsSmall: a change of a resource copies the way to it, and nothing of its labels.
func TestAChangeThatLeavesLabelsIsSmall(t *testing.T) { // it counts allocations, so it runs alone
	var now index
	labels := map[string]string{}
	for i := range 10 {
		labels[fmt.Sprint("label-", i)] = "value"
	}
	r := &resources.Resource{Key: resources.Key{Type: "A", Mesh: "default", Name: "one"}, Labels: labels}
	now.set(nil, r)
	now.set(nil, &resources.Resource{Key: resources.Key{Type: "A", Mesh: "default", Name: "two"}, Labels: labels})
	if per := testing.AllocsPerRun(100, func() { now.seal(); now.set(r, r) }); per > 3+3 {
		t.Errorf("a change takes %.0f allocations, want at most 6: the three trees, the key, and a node with its items", per)
	}
	if per := testing.AllocsPerRun(100, func() {
		now.list(&Query{Type: "A", Labels: map[string]string{"label-3": "value"}}, func(*resources.Resource) bool { return true })
	}); per != 0 {
		t.Errorf("a list takes %.0f allocations, want none", per)
	}
}
