package kds

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestCreateBeforeDeleteOnTheWire checks promise 8, message by message, with a peer that joins parts and with one that
// does not. When resources are renamed, each new one is on the wire before the old one is removed, in the same message
// or an earlier one.
func TestCreateBeforeDeleteOnTheWire(t *testing.T) {
	t.Parallel()
	for _, features := range []exchange.Features{exchange.OwnFeatures(), plainFeatures} {
		for _, size := range []int{1 << 8, 1 << 20} { // several messages, or one
			t.Run(fmt.Sprintf("features %b, messages of %d bytes", features, size), func(t *testing.T) {
				g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.MaxMessageSize = size })
				old := many(t, g.store, "old", 20)
				p := dialPeer(t, "zone-1", g.address, features)
				p.openDown(old[0].Type)
				m := p.receive()
				have := map[string]bool{}
				take := func() {
					for _, r := range m.GetResources() {
						have[r.GetName()] = true
					}
					for _, name := range m.GetRemovedResources() {
						delete(have, name)
					}
				}
				for take(); len(have) < 20; take() {
					p.ack(m)
					m = p.receive()
				}
				var b store.Batch
				for i, key := range old {
					renamed, spec := permission(fmt.Sprintf("new%03d", i))
					b.Ops = append(b.Ops, store.Op{Delete: key}, store.Op{Put: written(t, globalHome, renamed, spec)})
				}
				if _, err := g.store.Apply(t.Context(), b); err != nil {
					t.Fatal(err)
				}
				messages := 0
				for removed := 0; removed < 20; messages++ {
					p.ack(m)
					m = p.receive()
					take()
					removed += len(m.GetRemovedResources())
					if len(have) < 20 {
						t.Fatalf("message %d leaves the peer with %d of 20: %v", messages, len(have), m.GetRemovedResources())
					}
				}
				if size == 1<<8 && messages < 4 || size == 1<<20 && messages != 1 {
					t.Errorf("it took %d messages", messages)
				}
				for name := range have {
					if !strings.HasPrefix(name, "new") {
						t.Errorf("%s is still there", name)
					}
				}
			})
		}
	}
}

// TestTypesInOrderOfDependency checks the other half of promise 8: however a peer subscribes, and however a commit is
// ordered, what others refer to is sent before them.
func TestTypesInOrderOfDependency(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory())
	types := []resources.Type{resources.TypeMeshTrafficPermission, resources.TypeMeshTimeout, resources.TypeMesh}
	p := dialPeer(t, "zone-1", g.address, exchange.OwnFeatures())
	p.openDown(types...)
	for range types {
		p.ack(p.receive())
	}
	eventually(t, "all answered", func() bool { return g.events.count(Acknowledged, "") == len(types) })
	var order []string
	for _, d := range resources.Descriptors() {
		if slices.Contains(types, d.Type) {
			order = append(order, string(d.Type))
		}
	}
	if order[0] != string(resources.TypeMesh) {
		t.Fatalf("the registry begins with %v", order)
	}
	for round := range 3 {
		var b store.Batch
		for _, typ := range types {
			key, spec := resources.Key{Type: typ, Mesh: "default", Name: fmt.Sprintf("r%d", round)}, `{}`
			switch typ {
			case resources.TypeMesh:
				key.Mesh = ""
			case resources.TypeMeshTimeout:
				spec = `{"targetRef":{"kind":"Mesh"}}`
			}
			b.Ops = append(b.Ops, store.Op{Put: written(t, globalHome, key, spec)})
		}
		if _, err := g.store.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		var got []string
		var messages []*discovery.DeltaDiscoveryResponse
		for range types {
			m := p.receive()
			got, messages = append(got, m.GetTypeUrl()), append(messages, m)
		}
		if !slices.Equal(got, order) {
			t.Errorf("round %d came as %v, want %v", round, got, order)
		}
		for _, m := range messages {
			p.ack(m)
		}
		eventually(t, "all answered", func() bool { return g.events.count(Acknowledged, "") == (round+2)*len(types) })
	}
}

// TestClocksThatJump checks that neither order nor change detection depends on a clock. The clocks of both stores leap
// years, back and forth, with every write; the stores end up the same, and a reconnect sends nothing.
func TestClocksThatJump(t *testing.T) {
	t.Parallel()
	jumping := func(first time.Duration) store.ViewConfig {
		leap := first
		return store.ViewConfig{Now: func() time.Time {
			leap = -leap * 3 / 2
			if leap > 50*365*24*time.Hour || leap < -50*365*24*time.Hour {
				leap = first
			}
			return time.Now().Add(leap)
		}}
	}
	above, below := store.NewMemoryWith(jumping(time.Hour)), store.NewMemoryWith(jumping(-time.Minute))
	g := startGlobal(t, above)
	z := startZone(t, "zone-1", g.address, below)
	key, _ := permission("p")
	service := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "s"}
	last := ""
	for i := range 60 {
		last = fmt.Sprintf(`{"default":{"allow":[{"sni":{"type":"Exact","value":"a%d"}}]}}`, i)
		put(t, above, written(t, globalHome, key, last))
		put(t, below, written(t, zoneHome("zone-1"), service, fmt.Sprintf(`{"ports":[{"port":%d}]}`, i+1)))
	}
	eventually(t, "the last of each, on the other side", func() bool {
		down, up := find(below, key.Type, "p"), find(above, service.Type, "s")
		return down != nil && string(down.Spec.JSON()) == last && up != nil && strings.Contains(string(up.Spec.JSON()), "60")
	})
	inSync := func() bool {
		for _, status := range []tracker.SyncStatus{z.Status(""), g.Statuses()[0]} {
			for _, typ := range status.Types {
				if typ.LagRevisions != 0 || typ.LagSeconds != 0 || typ.Sent != typ.Acked {
					return false
				}
			}
		}
		return true
	}
	eventually(t, "no lag on either side", inSync)
	atGlobal, atZone := above.Snapshot().Revision(), below.Snapshot().Revision()
	if _, err := g.Resync(t.Context(), "zone-1"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a second session", func() bool { return g.events.count(SessionStarted, "") == 2 && z.Connected() })
	types := 0
	for _, d := range resources.Descriptors() {
		if exchange.GlobalToZone.Carries(d) {
			types++
		}
	}
	eventually(t, "every type answered again", func() bool { return g.acknowledgedIn(2) >= types })
	eventually(t, "no lag again", inSync)
	if above.Snapshot().Revision() != atGlobal || below.Snapshot().Revision() != atZone {
		t.Errorf("a reconnect wrote: global %d to %d, zone %d to %d", atGlobal, above.Snapshot().Revision(), atZone,
			below.Snapshot().Revision())
	}
}

// acknowledgedIn counts the answers of one session.
func (g *testGlobal) acknowledgedIn(session uint64) int {
	g.events.mu.Lock()
	defer g.events.mu.Unlock()
	n := 0
	for _, e := range g.events.list {
		if e.Kind == Acknowledged && e.Session == session {
			n++
		}
	}
	return n
}
