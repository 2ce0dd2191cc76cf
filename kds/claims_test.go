package kds

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

func startReplica(t *testing.T, s store.Store, name string) *testGlobal {
	t.Helper()
	return startGlobal(t, s, func(c *GlobalConfig) { c.Replica = name })
}

// TestNewestSessionWinsAcrossReplicas checks that a zone's session on one replica ends when the zone connects to
// another one. Its writes are refused, even before it has ended.
func TestNewestSessionWinsAcrossReplicas(t *testing.T) {
	t.Parallel()
	memory := store.NewMemory()
	put(t, memory, written(t, globalHome, ZoneKey("zone-1"), `{}`))
	s := &gatedStore{Store: memory, arrived: make(chan struct{}), gate: make(chan error), deaf: true}
	a, b := startReplica(t, s, "a"), startReplica(t, memory, "b")
	old := dialPeer(t, "zone-1", a.address, plainFeatures)
	opened := make(chan struct{})
	go func() {
		old.openUp()
		close(opened)
	}()
	<-s.arrived // the claim
	s.gate <- nil
	<-opened
	item := wireOf(t, "zone-1", written(t, zoneHome("zone-1"),
		resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "a"}, `{}`))
	if err := old.up.Send(&discovery.DeltaDiscoveryResponse{TypeUrl: "MeshService", Nonce: "1",
		Resources: []*discovery.Resource{item}}); err != nil {
		t.Fatal(err)
	}
	<-s.arrived // the old session's write
	dialPeer(t, "zone-1", b.address, plainFeatures).openUp()
	eventually(t, "the zone is b's", func() bool { return b.Has("zone-1") && !a.Has("zone-1") })
	s.gate <- nil
	if _, err := old.up.Recv(); grpcstatus.Code(err) != codes.Aborted || count(memory, resources.TypeMeshService) != 0 {
		t.Errorf("the older session ended with %v and wrote %d", err, count(memory, resources.TypeMeshService))
	}
}

// lagging is a store whose view stays as it was until the next Apply, like that of a replica in etcd whose watch lags.
type lagging struct {
	store.Store
	view atomic.Pointer[store.Snapshot]
}

func (l *lagging) lag() {
	s := l.Store.Snapshot()
	l.view.Store(&s)
}

func (l *lagging) Snapshot() store.Snapshot {
	if view := l.view.Load(); view != nil {
		return *view
	}
	return l.Store.Snapshot()
}

func (l *lagging) Apply(ctx context.Context, b store.Batch) (*store.Commit, error) {
	commit, err := l.Store.Apply(ctx, b)
	l.view.Store(nil)
	return commit, err
}

// TestZoneComesBackToAViewThatLags checks a zone that was elsewhere meanwhile, and reconnects before the replica knows:
// it is not sent outdated state.
func TestZoneComesBackToAViewThatLags(t *testing.T) {
	t.Parallel()
	memory := store.NewMemory()
	late := &lagging{Store: memory}
	a, b := startReplica(t, late, "a"), startReplica(t, memory, "b")
	dialPeer(t, "zone-1", a.address, plainFeatures).openUp()
	eventually(t, "the zone is a's", func() bool { return a.Has("zone-1") })
	late.lag()
	dialPeer(t, "zone-1", b.address, plainFeatures).openUp()
	eventually(t, "the zone is b's", func() bool { return b.Has("zone-1") })
	key, spec := permission("p")
	put(t, memory, written(t, globalHome, key, spec))
	p := dialPeer(t, "zone-1", a.address, plainFeatures)
	p.openDown(key.Type)
	list, err := p.down.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if len(list.GetResources()) != 1 {
		t.Errorf("the zone is sent %d policies, and b has told it of 1", len(list.GetResources()))
	}
	if claim := ClaimOf(memory.Snapshot(), "zone-1"); claim.Replica != "a" {
		t.Errorf("the zone is with a, and %q has it", claim.Replica)
	}
}

// TestClaimsCostNothingTwice checks that a zone that reconnects to its replica writes nothing.
func TestClaimsCostNothingTwice(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	g := startReplica(t, s, "a")
	dialPeer(t, "zone-1", g.address, plainFeatures).openUp()
	eventually(t, "the zone is here", func() bool { return g.Has("zone-1") })
	before := s.Snapshot().Revision()
	dialPeer(t, "zone-1", g.address, plainFeatures).openDown(resources.TypeMesh)
	eventually(t, "a second session", func() bool { return g.events.count(SessionStarted, "") == 2 })
	if now := s.Snapshot().Revision(); now != before {
		t.Errorf("a reconnect took the store from %d to %d", before, now)
	}
}

// TestResyncOfAZoneElsewhere checks that a replica passes a resync on to the replica that holds the zone's claim.
func TestResyncOfAZoneElsewhere(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	a, b := startReplica(t, s, "a"), startReplica(t, s, "b")
	below := store.NewMemory()
	put(t, below, written(t, zoneHome("zone-1"), resources.Key{Type: resources.TypeMeshService, Mesh: "default",
		Name: "s"}, `{"ports":[{"port":80}]}`))
	z := startZone(t, "zone-1", a.address, below)
	eventually(t, "in sync", func() bool { return count(s, resources.TypeMeshService) == 1 })
	b.Adopt("zone-1", a.State("zone-1"))
	if ended, err := b.Resync(context.Background(), "zone-1"); !ended || err != nil {
		t.Fatalf("no session ended: %v", err)
	}
	eventually(t, "the service was sent again", func() bool { return z.events.resources(2) == 1 })
	eventually(t, "the zone is a's again", func() bool { return a.Has("zone-1") })
}

// TestReplicasAnswerForEachOther checks that a replica shows another one's status of a zone as its own.
func TestReplicasAnswerForEachOther(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	a, b := startReplica(t, s, "a"), startReplica(t, s, "b")
	key, spec := permission("p")
	put(t, s, written(t, globalHome, key, spec))
	below := store.NewMemory()
	startZone(t, "zone-1", a.address, below)
	eventually(t, "in sync", func() bool { return count(below, key.Type) == 1 })
	policy := find(s, key.Type, "p")
	eventually(t, "acknowledged", func() bool { return a.Rollout(policy).Zones.Acknowledged == 1 })
	if offline := b.Rollout(policy).Zones.Offline; len(offline) != 1 || b.InSession("zone-1") {
		t.Errorf("before it was told, it says %v", offline)
	}
	b.Adopt("zone-1", a.State("zone-1"))
	if !b.InSession("zone-1") || b.Rollout(policy).Zones.Acknowledged != 1 {
		t.Errorf("it says %+v", b.Rollout(policy).Zones)
	}
	eventually(t, "both say the same", func() bool { // a continues, so b's copy becomes outdated
		b.Adopt("zone-1", a.State("zone-1"))
		here, _ := a.Status("zone-1", "")
		there, _ := b.Status("zone-1", "")
		return here.Since.Equal(there.Since) && slices.EqualFunc(here.Types, there.Types, func(x, y tracker.TypeSync) bool {
			return x.Type == y.Type && x.Direction == y.Direction && x.Acknowledged == y.Acknowledged
		})
	})
	// The status that others report of a zone with a session here is ignored.
	b.Adopt("zone-1", &tracker.ZoneState{})
	a.Adopt("zone-1", &tracker.ZoneState{})
	if !a.InSession("zone-1") || b.InSession("zone-1") {
		t.Error("a zone's own session is overruled, or what is said of another is not")
	}
}
