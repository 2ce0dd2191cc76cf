package kds

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/kdspb"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

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
