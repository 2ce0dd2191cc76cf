package kds

import (
	"fmt"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestZonesWithoutAFeature checks that a zone that lacks one optional feature, and one that lacks all, gets and gives
// all that does not need the feature, in each of its sessions. TestZoneWithAPlainGlobal has a global that lacks all.
func TestZonesWithoutAFeature(t *testing.T) {
	t.Parallel()
	lacking := map[string]exchange.Features{"ours": plainFeatures, "any": 0}
	for _, name := range exchange.OwnFeatures().Names() {
		lacking[name] = exchange.OwnFeatures() &^ exchange.ParseFeatures([]string{name})
	}
	timeout := resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: "of-global"}
	const spec = `{"targetRef":{"kind":"Mesh"},"to":[{"targetRef":{"kind":"Mesh"},"default":{"idleTimeout":"1s"}}]}`
	for name, features := range lacking {
		t.Run("without "+name, func(t *testing.T) {
			t.Parallel()
			g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.Validate = resources.ValidatePeer })
			put(t, g.store, written(t, globalHome, timeout, spec))
			for _, session := range []string{"first", "second"} {
				p := dialPeer(t, "zone-1", g.address, features)
				p.openDown(timeout.Type)
				m := p.receive()
				if len(m.GetResources()) != 1 || !strings.HasPrefix(m.GetResources()[0].GetName(), "of-global") {
					t.Errorf("%s session: got %v", session, m.GetResources())
				}
				p.ack(m)
				p.openUp()
				service := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: session}
				item := wireOf(t, "zone-1", written(t, zoneHome("zone-1"), service,
					`{"selector":{"dataplaneLabels":{"matchLabels":{"app":"a"}}},"ports":[{"port":80}]}`))
				answer := p.send(service.Type, session, nil, item)
				if text := answer.GetErrorDetail().GetMessage(); text != "" || find(g.store, service.Type, session) == nil {
					t.Errorf("%s session: the global refused the service: %s", session, text)
				}
				_ = p.conn.Close()
			}
		})
	}
}

// TestSkewInBothDirections checks a zone and a global of which one or both lack a feature: each side gets what the
// other has, changes and removals too, in each of their sessions, and nothing is refused.
func TestSkewInBothDirections(t *testing.T) {
	t.Parallel()
	all := exchange.OwnFeatures() &^ exchange.FeatureTraces
	for _, name := range exchange.OwnFeatures().Names() {
		feature := exchange.ParseFeatures([]string{name})
		for _, tt := range []struct {
			who          string
			global, zone exchange.Features
		}{
			{"the global", all &^ feature, all},
			{"the zone", all, all &^ feature},
			{"both", all &^ feature, all &^ feature},
		} {
			t.Run(name+"/"+tt.who, func(t *testing.T) {
				t.Parallel()
				ofGlobal, ofZone := store.NewMemory(), store.NewMemory()
				g := startGlobalWith(t, ofGlobal, tt.global, func(c *GlobalConfig) { c.Validate = resources.ValidatePeer })
				for session := range 2 {
					if before := fmt.Sprintf("-%d", session-1); session > 0 { // while disconnected
						remove(t, ofGlobal, resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: "down" + before})
						remove(t, ofZone, resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "up" + before})
					}
					z := startZoneWith(t, "zone-1", g.address, ofZone, tt.zone,
						func(c *ZoneConfig) { c.Validate = resources.ValidateSpec })
					skewed(t, session, ofGlobal, ofZone)
					if refused := append(g.Refusals("zone-1"), z.Refusals()...); len(refused) > 0 {
						t.Errorf("session %d: refused are %+v", session, refused)
					}
					z.stop()
				}
			})
		}
	}
}

// skewed writes on both sides, in a session, and waits until the other side follows: the latest of each is there, and
// what was there in earlier sessions is gone.
func skewed(t *testing.T, session int, ofGlobal, ofZone store.Store) {
	t.Helper()
	down := resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: fmt.Sprintf("down-%d", session)}
	up := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: fmt.Sprintf("up-%d", session)}
	for _, value := range []int{1, 2} {
		put(t, ofGlobal, written(t, globalHome, down, fmt.Sprintf(`{"targetRef":{"kind":"Mesh"},"to":[{"targetRef":{"kind":"Mesh"},"default":{"idleTimeout":"%ds"}}]}`, value)))
		put(t, ofZone, written(t, zoneHome("zone-1"), up,
			fmt.Sprintf(`{"selector":{"dataplaneLabels":{"matchLabels":{"app":"a"}}},"ports":[{"port":%d}]}`, value)))
		eventually(t, "the zone follows", func() bool { return follows(ofZone, ofGlobal, down.Type, down.Name) })
		eventually(t, "the global follows", func() bool { return follows(ofGlobal, ofZone, up.Type, up.Name) })
	}
	eventually(t, "what was removed is gone", func() bool { return count(ofZone, down.Type) == 1 && count(ofGlobal, up.Type) == 1 })
}

// follows reports whether one store has the same as another under a display name.
func follows(a, b store.Store, typ resources.Type, name string) bool {
	copied, original := find(a, typ, name), find(b, typ, name)
	return copied != nil && original != nil && copied.Spec.Equal(original.Spec)
}
