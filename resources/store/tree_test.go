package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestTreeHasWhatWasPut: whatever is put and removed, a tree has the values of its keys in their order, and copies that were
// sealed keep what they had. Keys are short and of few bytes, so that many begin as others do or end where others go on.
func TestTreeHasWhatWasPut(t *testing.T) {
	t.Parallel()
	type kept struct {
		tree tree[int]
		want map[string]int
	}
	for seed := range uint64(50) {
		dice := rand.New(rand.NewPCG(seed, 3))
		draw := func() string {
			key := make([]byte, 1+dice.IntN(6))
			for i := range key {
				key[i] = "\x00ab\xff"[dice.IntN(4)]
			}
			return string(key)
		}
		now, copies := kept{want: map[string]int{}}, []kept{}
		for step := range 200 {
			switch key := draw(); dice.IntN(8) {
			case 0:
				copies = append(copies, kept{now.tree, maps.Clone(now.want)})
				now.tree.seal()
			case 1, 2, 3:
				now.tree.remove([]byte(key))
				delete(now.want, key)
			case 4: // a transaction that is dropped
				dropped := now.tree
				dropped.seal()
				dropped.put([]byte(key), -1)
				dropped.remove([]byte(draw()))
			default:
				now.tree.put([]byte(key), step)
				now.want[key] = step
			}
		}
		for i, one := range append(copies, now) {
			if problem := differs(&one.tree, one.want); problem != "" {
				t.Fatalf("seed %d, copy %d of %d: %s", seed, i, len(copies), problem)
			}
		}
	}
}

// differs returns how a tree differs from what it should have; empty if it does not.
func differs(got *tree[int], want map[string]int) string {
	keys := slices.Sorted(maps.Keys(want))
	prefixes := map[string]bool{"": true, "b\x00a": true, "zz": true}
	for _, key := range keys {
		for n := range len(key) + 1 {
			prefixes[key[:n]] = true
		}
		prefixes[key+"a"] = true
	}
	for prefix := range prefixes {
		if v, ok := got.get([]byte(prefix)); prefix != "" {
			if w, there := want[prefix]; ok != there || v != w {
				return fmt.Sprintf("%q has %d, %v, want %d, %v", prefix, v, ok, w, there)
			}
		}
		var listed, wanted []int
		got.each([]byte(prefix), func(v int) bool { listed = append(listed, v); return true })
		for _, key := range keys {
			if strings.HasPrefix(key, prefix) {
				wanted = append(wanted, want[key])
			}
		}
		if !slices.Equal(listed, wanted) {
			return fmt.Sprintf("under %q it has %v, want %v", prefix, listed, wanted)
		}
		if len(wanted) > 1 {
			n := 0
			if got.each([]byte(prefix), func(int) bool { n++; return n < 2 }); n != 2 {
				return fmt.Sprintf("under %q, a reader who had enough after 2 values got %d", prefix, n)
			}
		}
	}
	return ""
}

// TestTreeCopiesTheWay: a change copies the nodes on the way to its key, and a second one of the same edit none.
func TestTreeCopiesTheWay(t *testing.T) { // it counts allocations, so it runs alone
	var all tree[int]
	for i := range 1000 {
		all.put(fmt.Appendf(nil, "Type/%03d", i), i)
	}
	key := []byte("Type/500")
	if per := testing.AllocsPerRun(100, func() { all.put(key, 7) }); per != 1 {
		t.Errorf("a second change of a key takes %.0f allocations, want 1: the key", per)
	}
	// Under the race detector, a sealed tree is an allocation too.
	if per := testing.AllocsPerRun(100, func() { all.seal(); all.put(key, 7) }); per > 1+1+3*4 {
		t.Errorf("a change takes %.0f allocations, want at most 14: the key, and three levels of nodes", per)
	}
	if per := testing.AllocsPerRun(100, func() { all.get(key) }); per != 0 {
		t.Errorf("a look takes %.0f allocations, want none", per)
	}
	absent := []byte("Type/5005")
	if per := testing.AllocsPerRun(100, func() { all.seal(); all.remove(absent) }); per > 1 {
		t.Errorf("removing what is not there takes %.0f allocations, want none of nodes", per)
	}
}
