package kds

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/kdspb"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// plainGlobal serves the two streams and nothing else, without any feature. A test decides what it sends.
type plainGlobal struct {
	address string
	// asked gets the zone's requests, and send is sent to it; received gets the zone's responses, which are
	// acknowledged.
	asked    chan *discovery.DeltaDiscoveryRequest
	send     chan *discovery.DeltaDiscoveryResponse
	received chan *discovery.DeltaDiscoveryResponse
	// busy is held while a stream is served.
	busy sync.Mutex
}

// ended waits until the last stream is over: a message must not go to a zone that has left.
func (g *plainGlobal) ended() {
	g.busy.Lock()
	defer g.busy.Unlock()
}

func startPlainGlobal(t *testing.T) *plainGlobal {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &plainGlobal{
		address: l.Addr().String(), asked: make(chan *discovery.DeltaDiscoveryRequest, 1000),
		send: make(chan *discovery.DeltaDiscoveryResponse), received: make(chan *discovery.DeltaDiscoveryResponse, 1000),
	}
	server := grpc.NewServer()
	server.RegisterService(&kdspb.KDSSyncService_ServiceDesc, g)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return g
}

func (g *plainGlobal) GlobalToZoneSync(stream globalToZoneServer) error {
	g.busy.Lock()
	defer g.busy.Unlock()
	gone := make(chan error, 1)
	go func() {
		for {
			req, err := stream.Recv()
			if err != nil {
				gone <- err
				return
			}
			g.asked <- req
		}
	}()
	for {
		select {
		case m := <-g.send:
			if err := stream.Send(m); err != nil {
				return err
			}
		case err := <-gone:
			return err
		}
	}
}

func (g *plainGlobal) ZoneToGlobalSync(stream zoneToGlobalServer) error {
	for _, d := range resources.Descriptors() {
		if exchange.ZoneToGlobal.Carries(d) {
			if err := stream.Send(&discovery.DeltaDiscoveryRequest{Node: nodeOf("zone-1", Peer{}),
				TypeUrl: string(d.Type), ResourceNamesSubscribe: []string{"*"}}); err != nil {
				return err
			}
		}
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		g.received <- m
		if err := stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: m.GetTypeUrl(),
			ResponseNonce: m.GetNonce()}); err != nil {
			return err
		}
	}
}

// list sends a response and returns the zone's answer.
func (g *plainGlobal) list(t *testing.T, typ resources.Type, nonce string, removed []string,
	items ...*discovery.Resource) *discovery.DeltaDiscoveryRequest {
	t.Helper()
	deadline := time.After(time.Minute)
	select {
	case g.send <- &discovery.DeltaDiscoveryResponse{TypeUrl: string(typ), Nonce: nonce, Resources: items,
		RemovedResources: removed}:
	case <-deadline:
		t.Fatal("no zone is connected")
	}
	for {
		select {
		case req := <-g.asked:
			if req.GetResponseNonce() == nonce {
				return req
			}
		case <-deadline:
			t.Fatalf("no answer to %s, nonce %s", typ, nonce)
		}
	}
}

// plainItem returns r as a plain global sends it.
func plainItem(t *testing.T, r *resources.Resource) *discovery.Resource {
	t.Helper()
	out, err := exchange.NewMapping().Outbound(r, &exchange.Audience{Direction: exchange.GlobalToZone,
		Features: plainFeatures})
	if err != nil {
		t.Fatal(err)
	}
	wire, err := Encode(out)
	if err != nil {
		t.Fatal(err)
	}
	return wire
}

func TestZoneWithAPlainGlobal(t *testing.T) {
	t.Parallel()
	g := startPlainGlobal(t)
	s := store.NewMemory()
	service := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "backend"}
	key, spec := permission("of-the-global")
	put(t, s, written(t, zoneHome("zone-1"), service, `{"ports":[{"port":80}]}`))
	z := startZone(t, "zone-1", g.address, s, func(c *ZoneConfig) { c.Validate = resources.ValidateSpec })

	types := 0
	for req := range g.asked {
		types++
		if len(req.GetInitialResourceVersions()) > 0 || !slices.Equal(req.GetResourceNamesSubscribe(), []string{"*"}) ||
			req.GetNode().GetId() != "zone-1" {
			t.Errorf("asked %v", req)
		}
		if req.GetTypeUrl() == string(resources.TypeMeshProxyPatch) {
			break
		}
	}
	sent := map[string]bool{}
	for m := range g.received {
		if sent[m.GetTypeUrl()] = true; m.GetTypeUrl() == "MeshService" && len(m.GetResources()) != 1 {
			t.Errorf("the zone sent %v", m)
		}
		if len(sent) == 28 {
			break
		}
	}
	if types != 29 {
		t.Errorf("the zone asked for %d types", types)
	}

	good := plainItem(t, written(t, globalHome, key, spec))
	back := plainItem(t, written(t, zoneHome("zone-1"), service, `{}`))
	answer := g.list(t, service.Type, "1", nil, back)
	if !strings.Contains(answer.GetErrorDetail().GetMessage(), "this one, wrote it") || count(s, service.Type) != 1 {
		t.Errorf("the answer is %v", answer)
	}
	if answer := g.list(t, key.Type, "2", nil, good); answer.GetErrorDetail() != nil ||
		find(s, key.Type, "of-the-global") == nil {
		t.Errorf("the answer is %v", answer)
	}
	if len(z.Refusals()) != 1 {
		t.Errorf("refusals are %+v", z.Refusals())
	}
	if answer := g.list(t, key.Type, "3", []string{good.GetName()}); answer.GetErrorDetail() != nil ||
		count(s, key.Type) != 0 {
		t.Errorf("the answer is %v", answer)
	}
}

func TestCopiesInAZoneKeepOwnerAndStatus(t *testing.T) {
	t.Parallel()
	g := startPlainGlobal(t)
	s := store.NewMemory()
	startZone(t, "zone-1", g.address, s)
	key := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Namespace: "c", Name: "x"}
	first := written(t, zoneHome("ab"), key, `{"ports":[{"port":1}]}`)
	key.Namespace = "bc"
	second := written(t, zoneHome("a"), key, `{"ports":[{"port":2}]}`)
	first.Status = []byte(`{"vips":[{"ip":"10.0.0.9"}]}`)
	g.list(t, key.Type, "1", nil, plainItem(t, first))
	text := g.list(t, key.Type, "2", nil, plainItem(t, second)).GetErrorDetail().GetMessage()
	if !strings.Contains(text, `zone "ab"`) || !strings.Contains(text, `zone "a"`) {
		t.Errorf("the answer is %q", text)
	}
	held := find(s, key.Type, "x")
	if held == nil || held.Zone() != "ab" || len(held.Status) > 0 {
		t.Fatalf("the copy is %v, with status %s", held, held.Status)
	}
	ours := held.Clone()
	ours.Status = []byte(`{"vips":[{"ip":"10.0.0.1"}]}`)
	put(t, s, ours)
	changed := first.Clone()
	changed.Spec = second.Spec
	g.list(t, key.Type, "3", nil, plainItem(t, changed))
	if held := find(s, key.Type, "x"); !held.Spec.Equal(second.Spec) || string(held.Status) != string(ours.Status) {
		t.Errorf("spec %s, status %s", held.Spec.JSON(), held.Status)
	}
}

func TestMassDeletionIsHeld(t *testing.T) {
	t.Parallel()
	for _, accept := range []bool{false, true} {
		g := startPlainGlobal(t)
		s := store.NewMemory()
		own, ownSpec := permission("own")
		put(t, s, written(t, zoneHome("zone-1"), own, ownSpec))
		var items []*discovery.Resource
		for i := range 30 {
			key, spec := permission(fmt.Sprintf("p%d", i))
			items = append(items, plainItem(t, written(t, globalHome, key, spec)))
		}
		z := startZone(t, "zone-1", g.address, s)
		g.list(t, own.Type, "1", nil, items...)
		if count(s, own.Type) != 31 {
			t.Fatalf("%d permissions", count(s, own.Type))
		}
		z.stop()
		g.ended()
		z = startZone(t, "zone-1", g.address, s, func(c *ZoneConfig) {
			c.AcceptDeletes = func(string, resources.Type) bool { return accept }
		})
		extra, extraSpec := permission("extra")
		g.list(t, own.Type, "1", nil, plainItem(t, written(t, globalHome, extra, extraSpec)), items[0])
		want, held := 32, 1
		if accept {
			want, held = 3, 0
		}
		if got := count(s, own.Type); got != want || z.events.count(Held, own.Type) != held {
			t.Errorf("accept=%v: %d permissions, want %d; held %d times", accept, got, want, z.events.count(Held, own.Type))
		}
		if !accept {
			if r := z.Rollout(find(s, own.Type, "p1")); r.Source == nil || !r.Source.Removed || r.Source.Since.IsZero() {
				t.Errorf("of a copy whose removal is held, the rollout says %+v", r.Source)
			}
		}
		if find(s, own.Type, "extra") == nil || find(s, own.Type, "own") == nil {
			t.Error("an addition was held, or the zone's own is gone")
		}
		// Less than half, and explicit removals, pass.
		var names []string
		for _, item := range items[1:] {
			names = append(names, item.GetName())
		}
		g.list(t, own.Type, "2", names)
		if got := count(s, own.Type); got != 3 {
			t.Errorf("explicit removals left %d", got)
		}
	}
}

func TestBrokenStreamDeletesNothing(t *testing.T) {
	t.Parallel()
	g := startPlainGlobal(t)
	s := store.NewMemory()
	key, spec := permission("p")
	z := startZone(t, "zone-1", g.address, s)
	g.list(t, key.Type, "1", nil, plainItem(t, written(t, globalHome, key, spec)))
	revision := s.Snapshot().Revision()
	for range 3 {
		z.stop()
		g.ended()
		z = startZone(t, "zone-1", g.address, s)
		eventually(t, "connected", z.Connected)
	}
	if s.Snapshot().Revision() != revision {
		t.Error("something was written")
	}
}
