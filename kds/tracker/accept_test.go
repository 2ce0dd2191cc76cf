package tracker

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestAcceptsNothingThatCameMeanwhile: a deletion that is held while an operator's mark is compared is not among those
// that are made.
func TestAcceptsNothingThatCameMeanwhile(t *testing.T) {
	t.Parallel()
	spec, err := resources.NewSpec(resources.TypeMeshTimeout, []byte(`{"targetRef":{"kind":"Mesh"}}`))
	if err != nil {
		t.Fatal(err)
	}
	s := store.NewMemory()
	late := resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: "late"}
	commit, err := s.Apply(t.Context(), store.Batch{Ops: []store.Op{{Put: &resources.Resource{Key: late,
		Labels: map[string]string{}, Spec: spec}}}})
	if err != nil {
		t.Fatal(err)
	}
	shown := map[resources.Key]uint64{} // so many that comparing takes a while; none is there any more
	for i := range 4000 {
		shown[resources.Key{Type: late.Type, Mesh: late.Mesh, Name: fmt.Sprintf("p%d", i)}] = 1
	}
	more := maps.Clone(shown)
	more[late] = commit.Revision
	ledger := NewLedger(time.Now, nil)
	line := ledger.Line(exchange.GlobalToZone, late.Type, false)

	var wait sync.WaitGroup
	stop := make(chan struct{})
	wait.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				line.Hold(maps.Clone([]map[resources.Key]uint64{shown, more}[i%2]), time.Now())
			}
		}
	})
	defer wait.Wait()
	defer close(stop)
	mark, deadline := held{keys: shown}.mark(), time.Now().Add(time.Minute)
	for accepted := 0; accepted < 10; {
		switch _, err := ledger.Accept(t.Context(), s, late.Type, mark); {
		case err == nil:
			accepted++
		case !errors.Is(err, store.ErrConflict):
			t.Fatal(err)
		}
		if s.Snapshot().Get(late) == nil {
			t.Fatal("what nobody was shown is deleted")
		}
		if time.Now().After(deadline) {
			t.Fatalf("accepted %d times within a minute", accepted)
		}
	}
}
