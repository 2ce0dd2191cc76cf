package kds

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestReplacedListIsHeld has a global of which the zone has 30 permissions come back with 30 others: whatever happens to
// the list on its way, what it adds does not count for the guard, and what it lacks stays until an operator has spoken.
func TestReplacedListIsHeld(t *testing.T) {
	t.Parallel()
	again := func(r *replacedList) { r.z.Resync() }
	for name, tt := range map[string]struct {
		size int
		// first happens before the session that brings all of the new list; then once the zone has it.
		first, then func(*replacedList)
	}{
		"in parts":                      {size: 1 << 10},
		"in another session":            {then: again},
		"in parts and another session":  {size: 1 << 10, then: again},
		"after a restart of the zone":   {then: func(r *replacedList) { r.z.stop(); r.start() }},
		"in parts, and after a restart": {size: 1 << 10, then: func(r *replacedList) { r.z.stop(); r.start() }},
		"after more was added": {then: func(r *replacedList) {
			many(r.t, r.g.store, "later", 50)
			eventually(r.t, "what came later", func() bool { return count(r.own, r.old[0].Type) == 110 })
			again(r)
		}},
		"that ends between its parts, and after a restart": {size: 1 << 10, first: func(r *replacedList) {
			r.gate.Store(15)
			r.start()
			eventually(r.t, "the parts before", func() bool { return count(r.own, r.old[0].Type) > 40 })
			above := r.g.store
			r.g.stop()
			r.gate.Store(0)
			r.z.stop()
			if n := count(r.own, r.old[0].Type); n > 55 {
				r.t.Errorf("with %d permissions, all was there before the session ended", n)
			}
			r.g = startGlobal(r.t, above)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &replacedList{t: t, own: store.NewMemory(), kept: &notedEpoch{before: Before{}}}
			r.g = startGlobal(t, store.NewMemory())
			r.old = many(t, r.g.store, "old", 30)
			r.start()
			eventually(t, "all permissions", func() bool { return count(r.own, r.old[0].Type) == 30 })
			r.z.stop()
			r.g.stop()

			r.g = startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.MaxMessageSize = tt.size })
			many(t, r.g.store, "new", 30)
			if tt.first != nil {
				tt.first(r)
			}
			r.start()
			r.held(30)
			if tt.then != nil {
				tt.then(r)
				r.held(30)
			}
			accepted, err := r.z.AcceptDeletes(t.Context(), "", "")
			if err != nil || len(accepted) != 1 || accepted[0].Count != 30 || find(r.own, r.old[0].Type, "old000") != nil {
				t.Errorf("accepted %+v, error %v", accepted, err)
			}
			if noted, _ := r.kept.Before(t.Context()); len(noted) > 0 {
				t.Errorf("after that, the guard goes by %v", noted)
			}
		})
	}
}

type replacedList struct {
	t    *testing.T
	own  store.Store
	kept *notedEpoch
	old  []resources.Key
	g    *testGlobal
	z    *testZone
	// gate is the number of the new permission that the zone does not get past; zero for none. came counts them.
	gate, came atomic.Int64
}

func (r *replacedList) start() {
	features := exchange.OwnFeatures() &^ exchange.FeatureFrames // parts are what is in them, and not what it compresses to
	r.z = startZoneWith(r.t, "zone-1", r.g.address, r.own, features, func(c *ZoneConfig) {
		c.Epochs = r.kept
		c.Validate = func(one *resources.Resource) error {
			if strings.HasPrefix(one.DisplayName(), "new") {
				n := r.came.Add(1)
				for n == r.gate.Load() && r.t.Context().Err() == nil {
					time.Sleep(time.Millisecond)
				}
			}
			return nil
		}
	})
}

// held waits until a session has compared the permissions, and wants n of them held.
func (r *replacedList) held(n int) {
	r.t.Helper()
	eventually(r.t, "a whole list", func() bool { return r.z.Connected() && r.z.met.hasWhole(r.old[0].Type) })
	h := typeOf(r.z.Status(""), r.old[0].Type, "toZone").Held
	if h == nil || h.Count != n {
		r.t.Errorf("held are %+v, want %d", h, n)
	}
	for _, key := range r.old {
		if find(r.own, key.Type, key.Name) == nil {
			r.t.Fatalf("%s is gone, and nobody said so", key.Name)
		}
	}
}

// TestReplacedListOfTurnsIsHeld has a zone replace all of its services in one message, which the global stores in turns.
// Another writer is first at the last one, so that the message is judged again when nearly all is stored.
func TestReplacedListOfTurnsIsHeld(t *testing.T) {
	t.Parallel()
	const before, after = 600, 2000
	met, second := 0, false
	s := newQueuedStore(t, func(s *queuedStore, b store.Batch) {
		if !second || writerOf(b) != "big" {
			return
		}
		if met += len(b.Ops); met < after {
			return
		}
		second = false
		other := b.Ops[0].Put.Clone()
		other.Labels["of"] = "another writer"
		if _, err := s.Store.Apply(context.Background(), store.Batch{Ops: []store.Op{{Put: other}}}); err != nil {
			t.Error(err)
		}
	})
	g := startGlobal(t, s)
	big := dialPeer(t, "big", g.address, exchange.OwnFeatures())
	big.openUp()
	if answer := big.send(resources.TypeMeshService, "1", nil, servicesOf(t, "big", before, 0)...); answer.GetErrorDetail() != nil {
		t.Fatal(answer.GetErrorDetail().GetMessage())
	}
	second = true
	again := dialPeer(t, "big", g.address, exchange.OwnFeatures())
	again.openUp()
	if answer := again.send(resources.TypeMeshService, "1", nil, servicesOf(t, "big", before+after, 0)[before:]...); answer.GetErrorDetail() != nil {
		t.Fatal(answer.GetErrorDetail().GetMessage())
	}
	if second {
		t.Fatal("nobody came between the turns")
	}
	if n := count(s, resources.TypeMeshService); n != before+after {
		t.Errorf("there are %d services, want %d: what the list lacks is held", n, before+after)
	}
	status, _ := g.Status("big", resources.TypeMeshService)
	if h := typeOf(status, resources.TypeMeshService, "toGlobal").Held; h == nil || h.Count != before {
		t.Errorf("held are %+v, want %d", h, before)
	}
}
