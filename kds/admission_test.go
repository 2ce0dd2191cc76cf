package kds

import (
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/kds/kdspb"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

func TestNewestSessionWins(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory())
	service := wireOf(t, "zone-1", written(t, zoneHome("zone-1"),
		resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "late"}, `{}`))
	old := dialPeer(t, "zone-1", g.address, plainFeatures)
	old.openUp()
	old.openDown()
	fresh := dialPeer(t, "zone-1", g.address, plainFeatures)
	fresh.openUp()
	_ = old.up.Send(&discovery.DeltaDiscoveryResponse{TypeUrl: "MeshService", Nonce: "1",
		Resources: []*discovery.Resource{service}})
	for what, receive := range map[string]func() error{
		"up":   func() error { _, err := old.up.Recv(); return err },
		"down": func() error { _, err := old.down.Recv(); return err },
	} {
		if err := receive(); grpcstatus.Code(err) != codes.Aborted {
			t.Errorf("%s of the older session ended with %v", what, err)
		}
	}
	if _, err := openAgain(old); grpcstatus.Code(err) != codes.Aborted {
		t.Errorf("the older connection opened another stream: %v", err)
	}
	if count(g.store, resources.TypeMeshService) != 0 {
		t.Error("the older session wrote")
	}
	if answer := fresh.send(resources.TypeMeshService, "1", nil, service); answer.GetErrorDetail() != nil ||
		count(g.store, resources.TypeMeshService) != 1 {
		t.Errorf("the newer session could not write: %v", answer)
	}
}

func openAgain(p *peer) (*discovery.DeltaDiscoveryRequest, error) {
	stream, err := kdspb.NewKDSSyncServiceClient(p.conn).ZoneToGlobalSync(p.ctx)
	if err != nil {
		return nil, err
	}
	return stream.Recv()
}

func TestWhoMayNotConnect(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory())
	for name, want := range map[string]codes.Code{"": codes.InvalidArgument, "Zone_1": codes.InvalidArgument,
		"off": codes.FailedPrecondition} {
		off := written(t, globalHome, ZoneKey("off"), `{"enabled":false}`)
		put(t, g.store, off)
		p := dialPeer(t, name, g.address, plainFeatures)
		if _, err := openAgain(p); grpcstatus.Code(err) != want {
			t.Errorf("zone %q: %v, want %s", name, err, want)
		}
	}
	if count(g.store, resources.TypeZone) != 1 {
		t.Errorf("%d zones are registered", count(g.store, resources.TypeZone))
	}
}

func TestDisabledZoneGetsAndGivesNothing(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory())
	s1, s2 := store.NewMemory(), store.NewMemory()
	service := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "backend"}
	put(t, s1, written(t, zoneHome("zone-1"), service, `{}`))
	startZone(t, "zone-1", g.address, s1)
	startZone(t, "zone-2", g.address, s2)
	eventually(t, "the service in zone-2", func() bool { return find(s2, service.Type, "backend") != nil })
	put(t, g.store, written(t, globalHome, ZoneKey("zone-1"), `{"enabled":false}`))
	eventually(t, "it is withdrawn", func() bool { return find(s2, service.Type, "backend") == nil })
	key, spec := permission("p")
	put(t, g.store, written(t, globalHome, key, spec))
	eventually(t, "the policy in zone-2", func() bool { return find(s2, key.Type, "p") != nil })
	if find(s1, key.Type, "p") != nil || find(g.store, service.Type, "backend") == nil {
		t.Error("the disabled zone got something, or its copies are gone")
	}
	put(t, g.store, written(t, globalHome, ZoneKey("zone-1"), `{"enabled":true}`))
	eventually(t, "all is back", func() bool { return find(s2, service.Type, "backend") != nil && find(s1, key.Type, "p") != nil })
}
