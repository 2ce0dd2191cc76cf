package kds

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// gatedStore holds each write until the gate lets it through, or refuses it.
type gatedStore struct {
	store.Store
	arrived chan struct{}
	gate    chan error
	// deaf makes a waiting write ignore that its context is done.
	deaf bool
}

func (g *gatedStore) Apply(ctx context.Context, b store.Batch) (*store.Commit, error) {
	if g.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	g.arrived <- struct{}{}
	select {
	case err := <-g.gate:
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return g.Store.Apply(ctx, b)
}

// TestNothingAcknowledgedBeforeItIsDurable checks promise 1 of docs/reliability.md.
func TestNothingAcknowledgedBeforeItIsDurable(t *testing.T) {
	t.Parallel()
	memory := store.NewMemory()
	put(t, memory, written(t, globalHome, ZoneKey("zone-1"), `{}`))
	s := &gatedStore{Store: memory, arrived: make(chan struct{}), gate: make(chan error)}
	g := startGlobal(t, s)
	item := wireOf(t, "zone-1", written(t, zoneHome("zone-1"),
		resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "a"}, `{}`))
	answers := func(p *peer) chan error {
		answered := make(chan error, 1)
		go func() {
			_, err := p.up.Recv()
			answered <- err
		}()
		return answered
	}
	p := dialPeer(t, "zone-1", g.address, plainFeatures)
	p.openUp()
	if err := p.up.Send(&discovery.DeltaDiscoveryResponse{TypeUrl: "MeshService", Nonce: "1",
		Resources: []*discovery.Resource{item}}); err != nil {
		t.Fatal(err)
	}
	answered := answers(p)
	<-s.arrived
	select {
	case err := <-answered:
		t.Fatalf("answered before the commit: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	// While the store cannot write, the message waits; the session does not end for it.
	s.gate <- store.ErrUnavailable
	<-s.arrived
	select {
	case err := <-answered:
		t.Fatalf("a write that failed was answered: %v", err)
	default:
	}
	lag := func() float64 {
		status, _ := g.Status("zone-1", resources.TypeMeshService)
		return typeOf(status, resources.TypeMeshService, "toGlobal").LagSeconds
	}
	if lag() <= 0 {
		t.Error("a message that waits for the store does not count as behind")
	}
	s.gate <- errors.Join(store.ErrUnavailable, store.ErrUncertain)
	<-s.arrived
	s.gate <- nil
	if err := <-answered; err != nil || count(memory, resources.TypeMeshService) != 1 {
		t.Fatalf("not stored: %v", err)
	}
	if lag() != 0 {
		t.Errorf("behind by %g s once it is stored", lag())
	}
}

// TestFencedInTheMiddleOfAWrite checks that a batch of an older session that waits for the store is refused (promise
// 9).
func TestFencedInTheMiddleOfAWrite(t *testing.T) {
	t.Parallel()
	memory := store.NewMemory()
	put(t, memory, written(t, globalHome, ZoneKey("zone-1"), `{}`))
	s := &gatedStore{Store: memory, arrived: make(chan struct{}), gate: make(chan error), deaf: true}
	g := startGlobal(t, s)
	item := wireOf(t, "zone-1", written(t, zoneHome("zone-1"),
		resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "a"}, `{}`))
	old := dialPeer(t, "zone-1", g.address, plainFeatures)
	old.openUp()
	if err := old.up.Send(&discovery.DeltaDiscoveryResponse{TypeUrl: "MeshService", Nonce: "1",
		Resources: []*discovery.Resource{item}}); err != nil {
		t.Fatal(err)
	}
	<-s.arrived
	dialPeer(t, "zone-1", g.address, plainFeatures).openUp()
	s.gate <- nil
	if _, err := old.up.Recv(); grpcstatus.Code(err) != codes.Aborted || count(memory, resources.TypeMeshService) != 0 {
		t.Errorf("the older session ended with %v and wrote %d", err, count(memory, resources.TypeMeshService))
	}
}

// TestPeerThatDoesNotReadIsEnded checks promise 7, and that the others do not wait for such a peer (promise 5).
func TestPeerThatDoesNotReadIsEnded(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.SendTimeout = 2 * time.Second })
	var rs []*resources.Resource
	noise := make([]byte, 100<<10) // noise that gzip cannot compress
	random := rand.NewChaCha8([32]byte{})
	for i := range 8 {
		_, _ = random.Read(noise)
		long := hex.EncodeToString(noise)
		key, _ := permission(fmt.Sprintf("big%d", i))
		rs = append(rs, written(t, globalHome, key, `{"default":{"allow":[{"sni":{"type":"Exact","value":"`+long+`"}}]}}`))
		key.Type = resources.TypeMeshTimeout
		rs = append(rs, written(t, globalHome, key, `{"targetRef":{"kind":"Mesh","name":"`+long+`"}}`))
	}
	put(t, g.store, rs...)
	stuck := dialPeer(t, "stuck", g.address, exchange.OwnFeatures())
	stuck.openDown(rs[0].Type, rs[1].Type) // gRPC accepts all of the first message; the second has to wait
	s := store.NewMemory()
	startZone(t, "zone-1", g.address, s)
	eventually(t, "the other zone", func() bool { return count(s, rs[0].Type) == 8 })
	eventually(t, "the end of the stuck session", func() bool {
		g.events.mu.Lock()
		defer g.events.mu.Unlock()
		for _, e := range g.events.list {
			if e.Kind == SessionEnded && e.Zone == "stuck" {
				return errors.Is(e.Err, ErrSendTimeout)
			}
		}
		return false
	})
}

// TestPeerThatOnlyTalksIsEnded checks promise 7 for a peer that sends and does not read. Its answers pile up unread,
// and the end of its streams would queue behind them, so the connection is closed.
func TestPeerThatOnlyTalksIsEnded(t *testing.T) {
	t.Parallel()
	unknown := func(i int) string { return fmt.Sprintf("Type%d", i) }
	for _, tt := range []struct {
		name string
		talk func(p *peer, i int) error
		want error
	}{
		{"asks for 10,000 types", func(p *peer, i int) error {
			return p.down.Send(&discovery.DeltaDiscoveryRequest{Node: nodeOf(p.name, p.self), TypeUrl: unknown(i),
				ResourceNamesSubscribe: []string{"*"}})
		}, ErrTooManyTypes},
		{"sends 10,000 types", func(p *peer, i int) error {
			return p.up.Send(&discovery.DeltaDiscoveryResponse{TypeUrl: unknown(i), Nonce: strings.Repeat("1", 1<<10)})
		}, ErrSendTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.SendTimeout = time.Second })
			p := dialPeer(t, "talker", g.address, exchange.OwnFeatures())
			p.openDown()
			p.openUp()
			sent := 0
			for sent < 10_000 && tt.talk(p, sent) == nil {
				sent++
			}
			t.Logf("%d went through", sent)
			eventually(t, "the end of the session", func() bool {
				g.events.mu.Lock()
				defer g.events.mu.Unlock()
				for _, e := range g.events.list {
					if e.Kind == SessionEnded {
						return errors.Is(e.Err, tt.want)
					}
				}
				return false
			})
			if p.conn.WaitForStateChange(p.ctx, connectivity.Ready); p.ctx.Err() != nil {
				t.Error("the connection is still there")
			}
		})
	}
}

// TestRandomOperationsConverge runs writes on a global and two zones while sessions break, with small messages and a
// small changelog, and compares each zone's final state with what Filter allows.
func TestRandomOperationsConverge(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { converge(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func converge(t *testing.T, random *rand.Rand) {
	t.Helper()
	small := store.ViewConfig{WindowCommits: 64, WindowChanges: 64}
	g := startGlobal(t, store.NewMemoryWith(small), func(c *GlobalConfig) { c.MaxMessageSize = 1500 })
	accept := func(c *ZoneConfig) {
		c.MaxMessageSize = 1500
		c.AcceptDeletes = func(string, resources.Type) bool { return true }
	}
	stores := map[string]store.Store{"zone-1": store.NewMemoryWith(small), "zone-2": store.NewMemoryWith(small)}
	zones := map[string]*testZone{}
	for name, s := range stores {
		zones[name] = startZone(t, name, g.address, s, accept)
	}
	for range 400 {
		name := fmt.Sprintf("zone-%d", 1+random.IntN(2))
		switch random.IntN(12) {
		case 0:
			g.mu.Lock()
			if s := g.sessions[name]; s != nil {
				s.cancel(ErrDraining)
			}
			g.mu.Unlock()
		case 1:
			if g.store.Snapshot().Get(ZoneKey(name)) != nil {
				put(t, g.store, written(t, globalHome, ZoneKey(name), fmt.Sprintf(`{"enabled":%v}`, random.IntN(3) > 0)))
			}
		case 2, 3, 4, 5:
			randomWrite(t, random, stores[name], zoneHome(name))
		default:
			randomWrite(t, random, g.store, globalHome)
		}
	}
	for name := range zones {
		put(t, g.store, written(t, globalHome, ZoneKey(name), `{"enabled":true}`))
	}
	for name, s := range stores {
		eventually(t, "agreement about "+name, func() bool { return maps.Equal(expected(g, stores, name), copies(s)) })
	}
}

// randomWrite puts or deletes one of few resources, so that they are often changed and created again.
func randomWrite(t *testing.T, random *rand.Rand, s store.Store, home resources.Home) {
	t.Helper()
	key := resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: fmt.Sprintf("p%d", random.IntN(20))}
	spec := fmt.Sprintf(`{"targetRef":{"kind":"Mesh"},"to":[{"targetRef":{"kind":"MeshService","name":"backend"},"default":{"idleTimeout":"%ds"}}]}`, random.IntN(1000))
	if home.Zone != "" {
		key.Namespace = "ns"
		if random.IntN(2) == 0 {
			key.Type, spec = resources.TypeMeshService, fmt.Sprintf(`{"ports":[{"port":%d}]}`, 1+random.IntN(1000))
		}
	}
	if random.IntN(3) == 0 {
		remove(t, s, key)
		return
	}
	put(t, s, written(t, home, key, spec))
}

// expected returns what a zone must hold of others: display name and, without references, the spec, by type and owner.
func expected(g *testGlobal, stores map[string]store.Store, zone string) map[string]string {
	want := map[string]string{}
	for _, typ := range []resources.Type{resources.TypeMeshTimeout, resources.TypeMeshService} {
		for r := range g.store.Snapshot().List(store.Query{Type: typ}) {
			if r.Zone() == "" {
				want[fmt.Sprint(typ, ownerOf(r))] = summary(r)
			}
		}
		for other, s := range stores {
			if other == zone {
				continue
			}
			for r := range s.Snapshot().List(store.Query{Type: typ}) {
				if r.Zone() == other && r.Labels[resources.LabelOrigin] == resources.OriginZone {
					want[fmt.Sprint(typ, ownerOf(r))] = summary(r)
				}
			}
		}
	}
	return want
}

func copies(s store.Store) map[string]string {
	have := map[string]string{}
	for _, typ := range []resources.Type{resources.TypeMeshTimeout, resources.TypeMeshService} {
		for r := range s.Snapshot().List(store.Query{Type: typ}) {
			if r.Labels[resources.LabelOrigin] == resources.OriginGlobal {
				have[fmt.Sprint(typ, ownerOf(r))] = summary(r)
			}
		}
	}
	return have
}

// summary returns the part of a spec that no rewriting changes.
func summary(r *resources.Resource) string {
	if p, err := resources.SpecAs[resources.Policy](r); err == nil {
		return string(p.To[0].Default)
	}
	return string(r.Spec.JSON())
}
