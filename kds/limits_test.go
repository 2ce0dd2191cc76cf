package kds

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/kdspb"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// junk returns n resources that cannot be decoded, numbered from from on.
func junk(from, n int) []*discovery.Resource {
	var out []*discovery.Resource
	for i := range n {
		out = append(out, &discovery.Resource{Name: fmt.Sprintf("junk-%d.default", from+i), Version: "v",
			Resource: &anypb.Any{TypeUrl: "no resource"}})
	}
	return out
}

// inUse returns the reachable memory, in bytes.
func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestRefusedNamesAreBounded checks that of many times the names that are kept, refused in the parts of one list, only a
// readable number is kept.
func TestRefusedNamesAreBounded(t *testing.T) {
	const parts, names = 8, tracker.MaxRefusals
	s := store.NewMemory()
	put(t, s, written(t, globalHome, ZoneKey("zone-1"), `{}`))
	v := testReceiver(exchange.ZoneToGlobal, s)
	v.over = tracker.NewOver(time.Now, nil)
	before := inUse()
	for i := range parts {
		m := &discovery.DeltaDiscoveryResponse{TypeUrl: string(resources.TypeMeshService), Nonce: "1",
			Resources: junk(i*names, names), SystemVersionInfo: "7 list more"}
		answer, err := v.handle(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(answer.GetErrorDetail().GetMessage(), "\n") + 1; lines != maxRefusalLines {
			t.Fatalf("the answer has %d lines", lines)
		}
	}
	if grown := inUse() - before; grown > 16<<20 {
		t.Errorf("%d MiB are kept", grown>>20)
	}
	if n := len(v.refusals.List()); n > tracker.MaxRefusals || n < tracker.MaxRefusals/10 ||
		wordsOf(v.refusals) > tracker.MaxRefusalBytes {
		t.Errorf("%d refusals of %d bytes are kept", n, wordsOf(v.refusals))
	}
	over := v.over.List()
	if len(over) != 1 || over[0].Limit != tracker.LimitRefusals || over[0].Count != parts*names-len(v.refusals.List()) {
		t.Errorf("met: %+v", over)
	}
	v.refusals.Rest()
	if n := len(v.refusals.List()); n != tracker.KeptRefusals {
		t.Errorf("%d refusals are kept of a peer that is gone", n)
	}
	if grown := inUse() - before; grown > 4<<20 { // what a process keeps after its first message counts too
		t.Errorf("%d KiB are kept of a peer that is gone", grown>>10)
	}
	runtime.KeepAlive(v)
}

// wordsOf returns the size of the texts of all refusals, in bytes.
func wordsOf(f *tracker.Refusals) (n int) {
	for _, r := range f.List() {
		n += len(r.Name) + len(r.Version) + len(r.Reason)
	}
	return n
}

// TestRefusalsKeepNoMessage checks that a kept reason does not keep its message in memory.
func TestRefusalsKeepNoMessage(t *testing.T) {
	f := tracker.NewRefusals(time.Now, nil)
	before := inUse()
	for i := range 20 {
		name := fmt.Sprintf("p-%d.default", i)
		message := name + ": " + strings.Repeat("x", 5<<20)
		scope := tracker.Refusal{Direction: exchange.GlobalToZone, Type: resources.TypeMeshService, ByPeer: true}
		f.Settle(scope, []string{name}, parseRefusals(scope, message, []string{name}, func(*tracker.Refusal) {}))
	}
	if grown := inUse() - before; grown > 1<<20 {
		t.Errorf("%d MiB are kept of 20 refusals", grown>>20)
	}
	if n := len(f.List()); n != 20 {
		t.Errorf("%d refusals", n)
	}
}

// TestNamesOfAListAreNotKept checks that between the parts of a list, and of the answer to initial_resource_versions,
// only names of copies are kept.
func TestNamesOfAListAreNotKept(t *testing.T) {
	s := store.NewMemory()
	put(t, s, written(t, globalHome, ZoneKey("zone-1"), `{}`))
	v := testReceiver(exchange.ZoneToGlobal, s)
	good := wireOf(t, "zone-1", written(t, zoneHome("zone-1"),
		resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "good"}, `{}`))
	var removed []string
	for i := range 1000 {
		removed = append(removed, fmt.Sprintf("gone-%d.default", i))
	}
	say := func(progress string, items ...*discovery.Resource) *reception {
		m := &discovery.DeltaDiscoveryResponse{TypeUrl: string(resources.TypeMeshService), Nonce: "1", Resources: items,
			SystemVersionInfo: progress}
		if strings.Contains(progress, "resume") {
			m.RemovedResources = removed
		}
		if _, err := v.handle(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		return v.types[resources.TypeMeshService]
	}
	for range 3 {
		if state := say("7 list more", append(junk(0, 1000), good)...); len(state.listed) != 1 {
			t.Errorf("%d names are kept", len(state.listed))
		}
	}
	say("7 list", junk(0, 1)...)
	if n := count(s, resources.TypeMeshService); n != 1 {
		t.Errorf("%d services after a list that names one in its first part", n)
	}
	for range 3 {
		if state := say("8 resume more"); len(state.removed) != 0 {
			t.Errorf("%d removals are kept", len(state.removed))
		}
	}
	removed = []string{good.GetName()}
	say("8 resume more")
	removed = nil
	say("8 resume")
	if n := count(s, resources.TypeMeshService); n != 0 {
		t.Error("a removal in an earlier part is forgotten")
	}
}

// TestWhatAPeerSaysThatItHasIsBounded checks that a peer that claims too much gets the complete list.
func TestWhatAPeerSaysThatItHasIsBounded(t *testing.T) {
	s := store.NewMemory()
	key, spec := permission("p")
	put(t, s, written(t, globalHome, ZoneKey("zone-1"), `{}`), written(t, globalHome, key, spec))
	have := func(n int) map[string]string {
		out := map[string]string{}
		for i := range n {
			out[fmt.Sprintf("%s-%d.default", strings.Repeat("x", 200), i)] = "v"
		}
		return out
	}
	for n, want := range map[int]string{10: "resume", maxHave / 200: "list"} {
		g := startGlobal(t, s)
		p := dialPeer(t, "zone-1", g.address, exchange.OwnFeatures())
		p.openDown()
		const most = 20_000 // in one request, which has a limit of its own
		for sent, types := 0, []resources.Type{resources.TypeMeshTimeout, resources.TypeMeshRetry,
			resources.TypeMeshHTTPRoute, resources.TypeMeshTCPRoute, resources.TypeMeshService, resources.TypeMeshCircuitBreaker, resources.TypeMeshTrust}; sent+most < n && len(types) > 0; sent, types = sent+most, types[1:] {
			p.subscribe(types[0], have(most))
		}
		p.subscribe(key.Type, have(min(n, most)))
		for {
			m := p.receive()
			if m.GetTypeUrl() == string(key.Type) {
				if !strings.Contains(m.GetSystemVersionInfo(), want) {
					t.Errorf("%d names: %q", n, m.GetSystemVersionInfo())
				}
				break
			}
		}
		status, _ := g.Status("zone-1", "")
		if got := len(status.Over) > 0; got != (want == "list") {
			t.Errorf("%d names: the status says %+v", n, status.Over)
		}
		g.stop()
	}
}

// TestHeldStreamsAreBounded checks that a zone may hold a few streams open, and others once those have ended.
func TestHeldStreamsAreBounded(t *testing.T) {
	g := startGlobal(t, store.NewMemory())
	p := dialPeer(t, "zone-1", g.address, exchange.OwnFeatures())
	desc := kdspb.GlobalKDSService_ServiceDesc.Streams[0]
	for range maxHeldStreams + 5 {
		if _, err := p.conn.NewStream(p.ctx, &desc, kdspb.GlobalKDSService_StreamXDSConfigs_FullMethodName); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "as many as may be are held", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.held["zone-1"]) == maxHeldStreams
	})
	stream, err := p.conn.NewStream(p.ctx, &desc, kdspb.GlobalKDSService_StreamXDSConfigs_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(new(discovery.DeltaDiscoveryRequest)); grpcstatus.Code(err) != codes.ResourceExhausted {
		t.Errorf("one more ends with %v", err)
	}
	_ = p.conn.Close()
	eventually(t, "all are given back", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.held) == 0
	})
}

// TestHeldStreamsAreFreed checks that a newer connection of the zone does not wait for the slots of the previous one,
// whose streams get the reason, and that the end of the zone's session ends them too.
func TestHeldStreamsAreFreed(t *testing.T) {
	g := startGlobal(t, store.NewMemory())
	desc := kdspb.GlobalKDSService_ServiceDesc.Streams[0]
	fill := func(p *peer) []grpc.ClientStream {
		var all []grpc.ClientStream
		for range maxHeldStreams {
			stream, err := p.conn.NewStream(p.ctx, &desc, kdspb.GlobalKDSService_StreamXDSConfigs_FullMethodName)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, stream)
		}
		return all
	}
	held := func(by uint64) int {
		g.mu.Lock()
		defer g.mu.Unlock()
		n := 0
		for h := range g.held["zone-1"] {
			if h.connection.number == by {
				n++
			}
		}
		return n
	}
	fill1 := fill(dialPeer(t, "zone-1", g.address, exchange.OwnFeatures()))
	eventually(t, "the first connection has all places", func() bool { return held(1) == maxHeldStreams })
	fill(dialPeer(t, "zone-1", g.address, exchange.OwnFeatures()))
	eventually(t, "the second has them", func() bool { return held(2) == maxHeldStreams && held(1) == 0 })
	for _, stream := range fill1 {
		if err := stream.RecvMsg(new(discovery.DeltaDiscoveryRequest)); grpcstatus.Code(err) == codes.OK ||
			!strings.Contains(err.Error(), "newer session") {
			t.Fatalf("the first ends with %v", err)
		}
	}
	g.End("zone-1", ErrZoneDisabled)
	if n := held(2); n != 0 {
		t.Errorf("%d are held after the end", n)
	}
}
