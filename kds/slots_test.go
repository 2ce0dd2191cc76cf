package kds

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

func TestSlotsGoInOrderOfArrival(t *testing.T) {
	t.Parallel()
	var told []bool
	queue := newSyncSlots(1, func(busy bool) { told = append(told, busy) })
	ready := func(c chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	first, second, third := queue.acquire(), queue.acquire(), queue.acquire()
	if !ready(first) || ready(second) || ready(third) {
		t.Fatal("not the first alone has the turn")
	}
	queue.release(second, false) // gave up waiting
	queue.release(first, false)
	if ready(second) || !ready(third) {
		t.Error("the turn did not go to who waits")
	}
	if queue.sendsMuch(); len(told) != 1 {
		t.Errorf("it was told %v while one sends much", told)
	}
	queue.release(third, true)
	if want := []bool{true, false}; !slices.Equal(told, want) {
		t.Errorf("it was told %v, want %v", told, want)
	}
	if !ready(queue.acquire()) {
		t.Error("the turn was lost")
	}
	if none := newSyncSlots(0, nil); !ready(none.acquire()) {
		t.Error("no limit makes wait")
	}
}

// TestFullStatesTakeSlots checks that with one slot, a zone that does not answer delays the next zone's list by the
// send timeout at most, and that a zone in sync waits for nothing.
func TestFullStatesTakeSlots(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	key, spec := permission("p")
	put(t, s, written(t, globalHome, key, spec))
	g := startGlobal(t, s, func(c *GlobalConfig) { c.FullSyncLimit, c.SendTimeout = 1, 300*time.Millisecond })
	done := startZone(t, "zone-1", g.address, store.NewMemory())
	eventually(t, "the first zone in sync", func() bool { return find(done.store, key.Type, "p") != nil })
	mute := dialPeer(t, "zone-2", g.address, plainFeatures)
	mute.openDown(key.Type)
	mute.receive() // and never answers
	late := startZone(t, "zone-3", g.address, store.NewMemory())
	other, otherSpec := permission("q")
	put(t, s, written(t, globalHome, other, otherSpec))
	eventually(t, "a change in the zone that is in sync", func() bool { return find(done.store, key.Type, "q") != nil })
	eventually(t, "the zone that had to wait", func() bool { return find(late.store, key.Type, "q") != nil })
}

// TestLargeListsOnlyAreTold: a zone that gets much counts as a full state, and one that comes back with it does not.
func TestLargeListsOnlyAreTold(t *testing.T) {
	t.Parallel()
	s, mine := store.NewMemory(), store.NewMemory()
	var all []*resources.Resource
	for i := range 100 {
		key, spec := permission(fmt.Sprintf("p-%d", i))
		all = append(all, written(t, globalHome, key, spec))
	}
	put(t, s, all...)
	told := make(chan bool, 100)
	g := startGlobal(t, s, func(c *GlobalConfig) { c.FullSyncs = func(under bool) { told <- under } })
	last := all[len(all)-1].Key
	plain := exchange.OwnFeatures() &^ exchange.FeatureTraces &^ exchange.FeatureFrames // frames of so little are small
	first := startZoneWith(t, "zone-1", g.address, mine, plain)
	eventually(t, "the zone in sync", func() bool { return find(mine, last.Type, last.Name) != nil })
	eventually(t, "the list of a new zone to be told, and its end", func() bool { return len(told) == 2 })
	if !<-told || <-told {
		t.Error("its end was told first")
	}
	first.stop()
	key, spec := permission("changed")
	put(t, s, written(t, globalHome, key, spec))
	startZoneWith(t, "zone-1", g.address, mine, plain)
	eventually(t, "the change in the zone that came back", func() bool { return find(mine, key.Type, "changed") != nil })
	select {
	case under := <-told:
		t.Errorf("a zone that came back for one change was told: %v", under)
	default:
	}
}
