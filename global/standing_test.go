package global

import (
	"context"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestZoneThatWasNotDeletedComesBack: where the session of a zone does not end, the answer is that nothing was deleted, and the zone is let in as
// before.
func TestZoneThatWasNotDeletedComesBack(t *testing.T) {
	t.Parallel()
	a, _ := watched(t)
	sync := kds.NewGlobal(kds.GlobalConfig{Store: a.store.(store.Store), Replica: "me"})
	sync.Adopt("zone-1", &kds.ZoneState{Connected: true, Since: time.Now()}) // the replica that has it does not hear of the end
	s := &standing{admission: a, sync: sync}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := s.remove(ctx, "zone-1"); err == nil {
		t.Fatal("it was deleted")
	}
	m, _, err := a.members.get(t.Context(), "zone-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.known(m, "zone-1"); err != nil {
		t.Errorf("the zone is not let in: %v", err)
	}
}
