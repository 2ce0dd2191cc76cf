package kds

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/kdspb"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/store"
)

// evilGlobal is a global that sends what a script tells it to. The zone reconnects whenever it hangs up.
type evilGlobal struct {
	t     *testing.T
	store store.Store // the zone's

	mu       sync.Mutex
	features exchange.Features // guarded by mu
	interval time.Duration
	down     *saidStream[globalToZoneServer, *discovery.DeltaDiscoveryRequest]  // guarded by mu: the last stream
	up       *saidStream[zoneToGlobalServer, *discovery.DeltaDiscoveryResponse] // guarded by mu
	asked    *discovery.DeltaDiscoveryResponse
}

// saidStream is one stream of the zone, until end is called.
type saidStream[S any, M any] struct {
	stream S
	in     *inbox[M]
	end    func()
	ended  <-chan struct{}
}

func hold[S grpc.ServerStream, M any](stream S, receive func() (M, error), keep func(*saidStream[S, M])) error {
	ended := make(chan struct{})
	s := &saidStream[S, M]{stream: stream, in: readInto(receive), end: sync.OnceFunc(func() { close(ended) }),
		ended: ended}
	keep(s)
	select {
	case <-ended:
		return errors.New("the script says so")
	case <-stream.Context().Done():
		s.end()
		return nil
	}
}

// GlobalToZoneSync implements kdspb.KDSSyncServiceServer.
func (g *evilGlobal) GlobalToZoneSync(stream globalToZoneServer) error {
	return hold(stream, stream.Recv, func(s *saidStream[globalToZoneServer, *discovery.DeltaDiscoveryRequest]) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.down = s
	})
}

// ZoneToGlobalSync implements kdspb.KDSSyncServiceServer.
func (g *evilGlobal) ZoneToGlobalSync(stream zoneToGlobalServer) error {
	return hold(stream, stream.Recv, func(s *saidStream[zoneToGlobalServer, *discovery.DeltaDiscoveryResponse]) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.up = s
	})
}

// HealthCheck implements kdspb.GlobalKDSServiceServer.
func (g *evilGlobal) HealthCheck(ctx context.Context,
	_ *meshpb.ZoneHealthCheckRequest) (*meshpb.ZoneHealthCheckResponse, error) {
	g.mu.Lock()
	header := metadata.MD{metadataFeatures: g.features.Names(),
		metadataEpoch: []string{strings.Repeat("i", int(g.features)%200)}}
	interval := g.interval
	g.mu.Unlock()
	return &meshpb.ZoneHealthCheckResponse{Interval: durationpb.New(interval)}, grpc.SetHeader(ctx, header)
}

// StreamXDSConfigs implements kdspb.GlobalKDSServiceServer.
func (g *evilGlobal) StreamXDSConfigs(grpc.BidiStreamingServer[meshpb.XDSConfigResponse,
	meshpb.XDSConfigRequest]) error {
	return nil
}

// StreamStats implements kdspb.GlobalKDSServiceServer.
func (g *evilGlobal) StreamStats(grpc.BidiStreamingServer[meshpb.StatsResponse, meshpb.StatsRequest]) error {
	return nil
}

// StreamClusters implements kdspb.GlobalKDSServiceServer.
func (g *evilGlobal) StreamClusters(grpc.BidiStreamingServer[meshpb.ClustersResponse, meshpb.ClustersRequest]) error {
	return nil
}

// streams returns those of the current session; it waits briefly for one.
func (g *evilGlobal) streams() (down *saidStream[globalToZoneServer, *discovery.DeltaDiscoveryRequest],
	up *saidStream[zoneToGlobalServer, *discovery.DeltaDiscoveryResponse]) {
	for deadline := time.Now().Add(200 * time.Millisecond); time.Now().Before(deadline); <-time.After(time.Millisecond) {
		g.mu.Lock()
		down, up = g.down, g.up
		g.mu.Unlock()
		if down != nil && up != nil && !isClosed(down.ended) && !isClosed(up.ended) {
			return down, up
		}
	}
	return nil, nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (g *evilGlobal) hangUp() {
	if down, up := g.streams(); down != nil {
		down.end()
		up.end()
	}
}

// send sends a response to the zone, and checks what the zone acknowledges.
func (g *evilGlobal) send(m *discovery.DeltaDiscoveryResponse, wrote string) {
	down, _ := g.streams()
	if down == nil || !encodable(m) || down.stream.Send(m) != nil {
		return
	}
	answer, ok := down.in.take(200*time.Millisecond, func(r *discovery.DeltaDiscoveryRequest) bool {
		return m.GetNonce() != "" && r.GetResponseNonce() == m.GetNonce()
	})
	if ok && answer.GetErrorDetail() == nil && wrote != "" && find(g.store, resources.Type(m.GetTypeUrl()), wrote) == nil {
		g.t.Errorf("%s of %s was acknowledged and is not stored", wrote, m.GetTypeUrl())
	}
}

func (g *evilGlobal) request(r *discovery.DeltaDiscoveryRequest) {
	if _, up := g.streams(); up != nil && encodable(r) {
		_ = up.stream.Send(r)
	}
}

func (g *evilGlobal) answer(text string, node byte) {
	_, up := g.streams()
	if up == nil {
		return
	}
	if m, ok := up.in.take(patienceOfFuzz, func(*discovery.DeltaDiscoveryResponse) bool { return true }); ok {
		g.asked = m
	}
	if g.asked == nil {
		return
	}
	r := &discovery.DeltaDiscoveryRequest{TypeUrl: g.asked.GetTypeUrl(), ResponseNonce: g.asked.GetNonce(),
		Node: saidNode("zone-1", node)}
	if text != "" {
		r.ErrorDetail = &rpcstatus.Status{Message: text}
	}
	g.request(r)
}

func (g *evilGlobal) play(op, a, b byte) {
	typ := pick(saidTypes, a)
	switch op % 10 {
	case 0, 1:
		item, wrote := saidItem(g.t, exchange.GlobalToZone, "zone-1", typ, b)
		g.send(&discovery.DeltaDiscoveryResponse{TypeUrl: typ, Nonce: "n", Resources: []*discovery.Resource{item},
			SystemVersionInfo: pick(saidVersions, a/16)}, wrote)
	case 2:
		g.send(&discovery.DeltaDiscoveryResponse{TypeUrl: typ, Nonce: pick(saidTexts, b),
			RemovedResources: []string{pick(saidNames, b), "own.default"}, SystemVersionInfo: pick(saidVersions, a/16)}, "")
	case 3:
		g.request(&discovery.DeltaDiscoveryRequest{TypeUrl: typ, Node: saidNode("zone-1", b),
			ResourceNamesSubscribe: []string{"*"}})
	case 4:
		g.request(&discovery.DeltaDiscoveryRequest{TypeUrl: typ, InitialResourceVersions: saidHave(a, b)})
	case 5:
		g.answer("", a)
	case 6:
		g.answer(pick(saidTexts, a), b)
	case 7:
		g.hangUp()
	case 8:
		g.mu.Lock()
		g.features, g.interval = []exchange.Features{exchange.OwnFeatures(), plainFeatures, 0,
			exchange.FeatureParts}[int(a)%4], time.Duration(int8(b))*time.Second
		g.mu.Unlock()
	case 9:
		key := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "z" + string('a'+rune(a%4))}
		if b%2 == 0 {
			put(g.t, g.store, written(g.t, zoneHome("zone-1"), key, `{"ports":[{"port":80}]}`))
		} else {
			remove(g.t, g.store, key)
		}
	}
}

// FuzzZoneSession plays sequences of what a global can send, on both streams, to a real zone. What the zone wrote
// itself is unchanged, and whatever was sent, the zone reconnects and applies what a sound global sends.
func FuzzZoneSession(f *testing.F) {
	f.Add([]byte{0, 0, 5, 0, 0, 13, 2, 0, 0, 0, 16, 21})                  // sends, removes, lists
	f.Add([]byte{3, 1, 4, 5, 0, 0, 9, 0, 0, 5, 0, 0, 9, 0, 1, 6, 0, 1})   // subscribes, acknowledges, refuses
	f.Add([]byte{4, 1, 1, 6, 1, 1, 7, 0, 0, 3, 1, 4, 5, 1, 1})            // has something, refuses, hangs up
	f.Add([]byte{8, 1, 1, 7, 0, 0, 0, 0, 5, 8, 2, 255, 7, 0, 0, 3, 9, 0}) // other features, unknown types
	f.Fuzz(func(t *testing.T, raw []byte) {
		c := newToll()
		playZone(t, raw)
		c.check(t)
	})
}

func playZone(t *testing.T, raw []byte) {
	s := store.NewMemory()
	key := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "own"}
	put(t, s, written(t, zoneHome("zone-1"), key, `{"ports":[{"port":80}]}`))
	revision := s.Snapshot().Get(key).Revision
	evil := &evilGlobal{t: t, store: s, features: exchange.OwnFeatures(), interval: time.Minute}
	l, target := listenSomewhere(t)
	stop := serveOn(t, l, func(r grpc.ServiceRegistrar) {
		r.RegisterService(&kdspb.KDSSyncService_ServiceDesc, evil)
		r.RegisterService(&kdspb.GlobalKDSService_ServiceDesc, evil)
	})
	z := NewZone(ZoneConfig{
		inspect: checkInvariants(t),
		Zone:    "zone-1", Target: target, Store: s, Validate: resources.ValidateSpec, Log: testLog(),
		MaxMessageSize: 2048, SendTimeout: 5 * time.Second,
		BackoffMin: time.Millisecond, BackoffMax: 5 * time.Millisecond,
		AcceptDeletes: func(string, resources.Type) bool { return true },
		Proxies:       func(func(uint64) bool) ([]tracker.ProxyBehind, uint32) { return nil, 0 },
	})
	ctx, cancel := withoutEnd()
	done := make(chan error, 1)
	go func() { done <- z.Run(ctx) }()
	for todo := (&script{rest: raw}); ; {
		op, a, b, ok := todo.next()
		if !ok {
			break
		}
		evil.play(op, a, b)
	}
	evil.mu.Lock()
	evil.features, evil.interval = exchange.OwnFeatures(), time.Minute
	evil.mu.Unlock()
	marker, spec := permission("marker")
	out, err := exchange.NewMapping().Outbound(written(t, globalHome, marker, spec),
		&exchange.Audience{Direction: exchange.GlobalToZone, Zone: "zone-1", Features: exchange.OwnFeatures()})
	if err != nil {
		t.Fatal(err)
	}
	item, err := Encode(out)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); find(s, marker.Type, "marker") == nil; {
		if time.Now().After(deadline) {
			t.Fatal("the zone did not take what a sound global sends")
		}
		evil.send(&discovery.DeltaDiscoveryResponse{TypeUrl: string(marker.Type), Nonce: "marker",
			Resources: []*discovery.Resource{item}, SystemVersionInfo: "1"}, "marker")
	}
	if r := s.Snapshot().Get(key); r == nil || r.Revision != revision {
		t.Errorf("%s is %v", key, r)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	stop()
}
