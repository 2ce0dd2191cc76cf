package kds

import (
	"errors"
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

// TestRefusedNamesAreBounded checks that of 300,000 names refused in the parts of one list, only a readable number is
// kept.
func TestRefusedNamesAreBounded(t *testing.T) {
	const parts, names = 30, 10_000
	s := store.NewMemory()
	put(t, s, written(t, globalHome, ZoneKey("zone-1"), `{}`))
	v := testReceiver(exchange.ZoneToGlobal, s)
	v.over = tracker.NewOver(time.Now)
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
	f := tracker.NewRefusals(time.Now)
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

// TestZoneHasARoom fills a zone's quota on the global: more is refused by name, what is there stays and can change,
// other types and other zones are not affected, and the next session stores what was refused once there is room.
func TestZoneHasARoom(t *testing.T) {
	const most = 5
	g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.Limits = Limits{Resources: most, Bytes: 64 << 10} })
	service := func(zone, name, spec string) *discovery.Resource {
		return wireOf(t, zone, written(t, zoneHome(zone),
			resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: name}, spec))
	}
	var all []*discovery.Resource
	for i := range most + 2 {
		all = append(all, service("big", fmt.Sprintf("s-%d", i), `{}`))
	}
	big := dialPeer(t, "big", g.address, exchange.OwnFeatures())
	big.openUp()
	refused := big.send(resources.TypeMeshService, "1", nil, all...).GetErrorDetail().GetMessage()
	for i, item := range all {
		if got := strings.Contains(refused, item.GetName()+": over the limit"); got != (i >= most) {
			t.Errorf("%s is refused: %v, in %q", item.GetName(), got, refused)
		}
	}
	if n := count(g.store, resources.TypeMeshService); n != most {
		t.Fatalf("%d are stored", n)
	}
	if answer := big.send(resources.TypeMeshService, "2", nil,
		service("big", "s-0", `{"selector":{"dataplaneTags":{"app":"x"}}}`)); answer.GetErrorDetail() != nil {
		t.Errorf("one that is there cannot change: %s", answer.GetErrorDetail().GetMessage())
	}
	large := `{"selector":{"dataplaneTags":{"app":"` + strings.Repeat("x", 65<<10) + `"}}}`
	if answer := big.send(resources.TypeMeshService, "3", nil,
		service("big", "s-1", large)); !strings.Contains(answer.GetErrorDetail().GetMessage(), "bytes") {
		t.Errorf("a large one is answered with %q", answer.GetErrorDetail().GetMessage())
	}
	limits := map[string]bool{}
	status, _ := g.Status("big", "")
	for _, o := range status.Over {
		limits[o.Limit] = o.Count > 0 && o.Most > 0
	}
	if !limits[tracker.LimitResources] || !limits[tracker.LimitBytes] {
		t.Errorf("the status says %+v", status.Over)
	}

	small := dialPeer(t, "small", g.address, exchange.OwnFeatures())
	small.openUp()
	if answer := small.send(resources.TypeMeshService, "1", nil,
		service("small", "s", `{}`)); answer.GetErrorDetail() != nil {
		t.Errorf("another zone is refused: %s", answer.GetErrorDetail().GetMessage())
	}

	// Two go, and the two that were refused are offered again: a zone that resumes is not told that they are here.
	big.send(resources.TypeMeshService, "4", []string{all[0].GetName(), all[1].GetName()})
	again := dialPeer(t, "big", g.address, exchange.OwnFeatures())
	up, err := kdspb.NewKDSSyncServiceClient(again.conn).ZoneToGlobalSync(again.ctx)
	if err != nil {
		t.Fatal(err)
	}
	again.up = up
	for _, d := range resources.Descriptors() {
		if !exchange.ZoneToGlobal.Carries(d) {
			continue
		}
		asked, err := up.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range all[most:] {
			if _, claimed := asked.GetInitialResourceVersions()[item.GetName()]; claimed {
				t.Errorf("%s is claimed to be here", item.GetName())
			}
		}
	}
	if answer := again.send(resources.TypeMeshService, "1", nil, all[2:]...); answer.GetErrorDetail() != nil {
		t.Errorf("there is room, and the answer is %s", answer.GetErrorDetail().GetMessage())
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

// TestQuotaIsReadAgain checks that a full quota notices when another writer has made room.
func TestQuotaIsReadAgain(t *testing.T) {
	q := &quota{limits: Limits{Resources: 1, Bytes: 1 << 20}, counted: time.Now().Add(-2 * recount),
		usage: usage{resources: map[resources.Type]int{resources.TypeMeshService: 1}}}
	r := written(t, zoneHome("zone-1"), resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "s"}, `{}`)
	if err := q.admit(&changeset{}, nil, r, func() usage { return usage{resources: map[resources.Type]int{}} }); err != nil {
		t.Error(err)
	}
	if err := q.admit(&changeset{change: change{added: 1}}, nil, r,
		func() usage { t.Error("read again at once"); return usage{} }); err == nil {
		t.Error("there was no room, and it was admitted")
	}
}

// TestWhatGoesToOthersProxiesIsBounded checks the separate limits of types that go to other zones' proxies, and that
// what is there can change.
func TestWhatGoesToOthersProxiesIsBounded(t *testing.T) {
	for _, row := range []struct {
		key     resources.Key
		has     int
		refused bool
	}{
		{resources.Key{Type: resources.TypeMeshTrust, Mesh: "default", Name: "one-more"}, maxZoneTrusts, true},
		{resources.Key{Type: resources.TypeMeshTrust, Mesh: "default", Name: "the-last"}, maxZoneTrusts - 1, false},
		{resources.Key{Type: resources.TypeZoneIngress, Name: "one-more"}, maxZoneIngresses, true},
		{resources.Key{Type: resources.TypeZoneIngress, Name: "the-last"}, maxZoneIngresses - 1, false},
		{resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "s"}, maxZoneTrusts, false},
	} {
		q := &quota{limits: Limits{}.filled(), counted: time.Now(),
			usage: usage{resources: map[resources.Type]int{row.key.Type: row.has}}}
		read := func() usage { return q.usage }
		one := written(t, zoneHome("zone-1"), row.key, `{}`)
		if err := q.admit(&changeset{}, nil, one, read); errors.Is(err, errOverLimit) != row.refused {
			t.Errorf("%s beside %d: %v", row.key, row.has, err)
		}
		if err := q.admit(&changeset{}, one, one, read); err != nil {
			t.Errorf("%s, which is there: %v", row.key, err)
		}
	}
}

// TestQuotaFollowsWhatIsStored checks that creating, changing and deleting resources leaves the quota as it was,
// versions included.
func TestQuotaFollowsWhatIsStored(t *testing.T) {
	s := store.NewMemory()
	put(t, s, written(t, globalHome, ZoneKey("zone-1"), `{}`))
	v := testReceiver(exchange.ZoneToGlobal, s)
	v.quota = &quota{limits: Limits{}.filled()}
	item := wireOf(t, "zone-1", written(t, zoneHome("zone-1"),
		resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "s"}, `{}`))
	version := 0
	say := func(m *discovery.DeltaDiscoveryResponse) {
		t.Helper()
		m.TypeUrl, m.Nonce = string(resources.TypeMeshService), "1"
		if answer, err := v.handle(t.Context(), m); err != nil || answer.GetErrorDetail() != nil {
			t.Fatal(answer, err)
		}
	}
	spec := func(app string) *discovery.DeltaDiscoveryResponse {
		item := wireOf(t, "zone-1",
			written(t, zoneHome("zone-1"), resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "s"},
				`{"selector":{"dataplaneTags":{"app":"`+app+`"}}}`))
		version++
		item.Version = fmt.Sprintf("%0*d", tracker.MaxVersion, version)
		return &discovery.DeltaDiscoveryResponse{Resources: []*discovery.Resource{item}}
	}
	say(&discovery.DeltaDiscoveryResponse{Resources: []*discovery.Resource{item}})
	for range 3 {
		say(spec("a"))
		say(spec("b"))
		if got, want := v.quota.usage.bytes, v.usage().bytes; got != want {
			t.Errorf("the quota counts %d bytes, and %d are stored", got, want)
		}
		say(&discovery.DeltaDiscoveryResponse{RemovedResources: []string{item.GetName()}})
		if got := v.quota.usage.bytes; got != 0 {
			t.Errorf("the quota counts %d bytes, and nothing is stored", got)
		}
	}
}
