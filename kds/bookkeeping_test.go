package kds

import (
	"fmt"
	"testing"

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
