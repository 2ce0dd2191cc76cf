package kds

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestRegistrationsLeaveTheWindow checks that many zones that register do not end the stream of a zone that still reads
// its first list and cannot take another: not that of a type without a change, nor of one with a change.
func TestRegistrationsLeaveTheWindow(t *testing.T) {
	t.Parallel()
	const window = 8
	g := startGlobal(t, store.NewMemoryWith(store.ViewConfig{WindowCommits: window, Background: Bookkeeping}))
	p := dialPeer(t, "zone-1", g.address, plainFeatures)
	permissions, timeouts := resources.TypeMeshTrafficPermission, resources.TypeMeshTimeout
	p.openDown(permissions, timeouts)
	lists := []*discovery.DeltaDiscoveryResponse{p.receive(), p.receive()}
	key, spec := permission("written-first")
	put(t, g.store, written(t, globalHome, key, spec))
	for i := range 3 * window {
		put(t, g.store, written(t, globalHome, ZoneKey(fmt.Sprint("other-", i)), `{}`))
	}
	for _, list := range lists {
		p.ack(list)
	}
	change := p.receive()
	if change.GetTypeUrl() != string(permissions) || len(change.GetResources()) != 1 {
		t.Fatalf("got %v, want the permission that was written", change)
	}
	p.ack(change)
	timeout := resources.Key{Type: timeouts, Mesh: "default", Name: "written-last"}
	put(t, g.store, written(t, globalHome, timeout,
		`{"targetRef":{"kind":"Mesh"},"to":[{"targetRef":{"kind":"Mesh"},"default":{"idleTimeout":"1s"}}]}`))
	if change = p.receive(); change.GetTypeUrl() != string(timeouts) || len(change.GetResources()) != 1 {
		t.Fatalf("got %v, want the timeout", change)
	}
}

// TestBookkeepingConcernsNoType checks, for changes of all stored types, that none which concerns a type that zones are
// sent is bookkeeping.
func TestBookkeepingConcernsNoType(t *testing.T) {
	t.Parallel()
	specs := rapid.SampledFrom([]string{`{}`, `{"enabled":true}`, `{"enabled":false}`})
	rapid.Check(t, func(rt *rapid.T) {
		typ := rapid.SampledFrom(resources.Stored()).Draw(rt, "type").Type
		var c store.Change
		for _, r := range []**resources.Resource{&c.Old, &c.New} {
			if (r == &c.New && c.Old == nil) || rapid.Bool().Draw(rt, "exists") {
				key := resources.Key{Type: typ, Name: "a"}
				*r = &resources.Resource{Key: key, Spec: &resources.Spec{}}
				if typ == resources.TypeZone {
					*r = written(t, globalHome, key, specs.Draw(rt, "spec"))
				}
			}
		}
		commit := &store.Commit{Changes: []store.Change{c}}
		for _, d := range resources.Stored() {
			if (d.GlobalToZone || d.AcrossZones) && concerns(exchange.GlobalToZone, d, commit) && Bookkeeping(c) {
				rt.Fatalf("a change of %s from %v to %v concerns %s and is bookkeeping", typ, c.Old, c.New, d.Type)
			}
		}
	})
}

// TestBookkeepingBeginsNoFlush checks that what is bookkeeping is told to the streams of the zones that it is about, and
// to nobody else, and that a change among it still goes to all.
func TestBookkeepingBeginsNoFlush(t *testing.T) {
	t.Parallel()
	s := store.NewMemoryWith(store.ViewConfig{Background: Bookkeeping})
	p := newPacer(s)
	var running sync.WaitGroup
	streams := map[string]*counted{}
	for _, zone := range []string{"zone-1", "zone-2", "zone-3"} {
		streams[zone] = newCounted()
		p.enter(zone, streams[zone], running.Go)
	}
	wants := func(what string, flushes int64, reconsidered map[string]int64) {
		t.Helper()
		for zone, stream := range streams {
			for stream.flushes.Load() < flushes || stream.alone.Load() < reconsidered[zone] {
				select {
				case <-stream.told:
				case <-time.After(30 * time.Second):
					t.Fatalf("%s: %s was not told: %d flushes, %d alone", what, zone, stream.flushes.Load(), stream.alone.Load())
				}
			}
			if f, a := stream.flushes.Load(), stream.alone.Load(); f != flushes || a != reconsidered[zone] {
				t.Errorf("%s: %s was told of %d flushes and %d times alone, want %d and %d", what, zone, f, a, flushes, reconsidered[zone])
			}
		}
	}
	zone := func(name string) { put(t, s, written(t, globalHome, ZoneKey(name), `{}`)) }
	zone("zone-2")
	wants("a zone that connects", 0, map[string]int64{"zone-2": 1})
	zone("zone-9")
	zone("zone-1")
	wants("a zone without a stream", 0, map[string]int64{"zone-1": 1, "zone-2": 1})
	key, spec := permission("p")
	put(t, s, written(t, globalHome, key, spec))
	wants("a policy", 1, map[string]int64{"zone-1": 1, "zone-2": 1})
	put(t, s, written(t, globalHome, ZoneKey("zone-3"), `{"enabled": false}`))
	wants("a zone that is disabled", 2, map[string]int64{"zone-1": 1, "zone-2": 1})
	for zone, stream := range streams {
		p.leave(zone, stream)
	}
	running.Wait()
}

// TestDeletionOfAZoneEndsItsStream checks that a zone that is deleted, which is bookkeeping to all others, is sent nothing
// more.
func TestDeletionOfAZoneEndsItsStream(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemoryWith(store.ViewConfig{Background: Bookkeeping}))
	p := dialPeer(t, "zone-1", g.address, plainFeatures)
	p.openDown(resources.TypeMeshTrafficPermission)
	p.ack(p.receive())
	if _, err := g.store.Apply(t.Context(), store.Batch{Ops: []store.Op{{Delete: ZoneKey("zone-1")}}}); err != nil {
		t.Fatal(err)
	}
	if m, err := p.down.Recv(); err == nil || !strings.Contains(err.Error(), ErrZoneDisabled.Error()) {
		t.Errorf("got %v and %v, want the end of the stream", m, err)
	}
}

// counted is a stream that counts what it is told.
type counted struct {
	flushes, alone atomic.Int64
	told           chan struct{}
}

func newCounted() *counted { return &counted{told: make(chan struct{}, 100)} }

func (c *counted) notify() {
	c.flushes.Add(1)
	c.told <- struct{}{}
}

func (c *counted) reconsider() {
	c.alone.Add(1)
	c.told <- struct{}{}
}
