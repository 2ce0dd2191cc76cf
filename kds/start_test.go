package kds

import (
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources/store"
)

// slowStart keeps the order of a session's events and delays the start, as a busy machine would.
type slowStart struct{ events }

func (o *slowStart) Observe(e Event) {
	if e.Kind == SessionStarted {
		time.Sleep(50 * time.Millisecond) // the zone's other stream has time to open in between
	}
	o.events.Observe(e)
}

// TestNothingIsToldBeforeTheStart checks that no event of a session precedes its start, whichever of its two streams
// opens first.
func TestNothingIsToldBeforeTheStart(t *testing.T) {
	t.Parallel()
	o := &slowStart{}
	g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.Observer = o })
	startZone(t, "zone-1", g.address, store.NewMemory())
	eventually(t, "both streams are open", func() bool { return o.count(StreamOpened, "") == 2 })
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.list {
		if e.Session == 0 {
			continue // a health check belongs to no session
		}
		if e.Kind != SessionStarted {
			t.Errorf("the session's first event is %v, want its start", e.Kind)
		}
		break
	}
}
