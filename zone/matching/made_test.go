package matching_test

import (
	"sync"
	"testing"

	"github.com/causeway-mesh/causeway/zone/matching"
)

func TestMadeIsShared(t *testing.T) {
	var kept matching.Made
	var all sync.WaitGroup
	got := make([]any, 16)
	for i := range got {
		all.Go(func() { got[i] = kept.Once("key", func() any { return new(int) }) })
	}
	all.Wait()
	for i := range got {
		if got[i] != got[0] {
			t.Fatalf("caller %d was given another one than caller 0", i)
		}
	}
	if kept.Once("other key", func() any { return new(int) }) == got[0] {
		t.Error("two keys have one value")
	}
	var none *matching.Made
	derived := 0
	for range 2 {
		none.Once("key", func() any { derived++; return nil })
	}
	if derived != 2 {
		t.Errorf("derived %d times where nothing is kept, want 2", derived)
	}
}
