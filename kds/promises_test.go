package kds

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/kds/exchange"
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
	// On a busy machine, the other zone may need a while for each message, too.
	g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.SendTimeout = 4 * time.Second })
	var rs []*resources.Resource
	const each = 2                 // of a type: more than the window of a stream and what gRPC holds beside it
	noise := make([]byte, 100<<10) // noise that gzip cannot compress
	random := rand.NewChaCha8([32]byte{})
	for i := range each {
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
	eventually(t, "the other zone", func() bool { return count(s, rs[0].Type) == each && count(s, rs[1].Type) == each })
	eventually(t, "the end of the stuck session", func() bool { return g.events.count(SessionEnded, "") > 0 })
	g.events.mu.Lock()
	defer g.events.mu.Unlock()
	for _, e := range g.events.list {
		if e.Kind == SessionEnded && (e.Zone != "stuck" || !errors.Is(e.Err, ErrSendTimeout)) {
			t.Errorf("the session of %s ended: %v", e.Zone, e.Err)
		}
	}
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
