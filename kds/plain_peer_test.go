package kds

import (
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

func TestPlainZoneGetsThePlainProtocol(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory())
	key, _ := permission("http")
	put(t, g.store,
		written(t, globalHome, key, `{"default":{"deny":[{"spiffeId":{"type":"Exact","value":"spiffe://a/b"},"path":{"type":"Exact","value":"/x"}}]}}`),
		written(t, globalHome, resources.Key{Type: resources.TypeMesh, Name: "default"}, `{}`))
	p := dialPeer(t, "plain", g.address, plainFeatures)
	p.openDown(resources.TypeMeshTimeout, key.Type, "NobodyKnows", resources.TypeDataplane, resources.TypeMesh)
	got := map[string]*discovery.DeltaDiscoveryResponse{}
	nonces := map[string]bool{}
	for len(got) < 3 {
		m := p.receive()
		got[m.GetTypeUrl()] = m
		nonces[m.GetNonce()] = true
		p.ack(m)
		if m.GetSystemVersionInfo() != "" || m.GetControlPlane().GetIdentifier() != "global" {
			t.Errorf("%s: system version %q, control plane %q", m.GetTypeUrl(), m.GetSystemVersionInfo(),
				m.GetControlPlane().GetIdentifier())
		}
	}
	if len(nonces) != 3 {
		t.Errorf("nonces are not those of one stream: %v", nonces)
	}
	if first := got[string(resources.TypeMeshTimeout)]; first == nil || len(first.GetResources()) != 0 {
		t.Errorf("the first list of a type of which there are none is %v", first)
	}
	item := got[string(key.Type)].GetResources()[0]
	e := envelope(t, item)
	if e.GetSpec().GetTypeUrl() != "" || strings.Contains(string(e.GetSpec().GetValue()), "path") ||
		!strings.Contains(string(e.GetSpec().GetValue()), `"rules":[{"default":{"deny":[{"spiffeID"`) {
		t.Errorf("spec %q of type %q", e.GetSpec().GetValue(), e.GetSpec().GetTypeUrl())
	}
	if !strings.HasSuffix(item.GetName(), ".default") || len(item.GetVersion()) != 64 {
		t.Errorf("item %q at %q", item.GetName(), item.GetVersion())
	}
	mesh := got["Mesh"].GetResources()[0]
	if mesh.GetName() != "default." ||
		envelope(t, mesh).GetSpec().GetTypeUrl() != "type.googleapis.com/kuma.mesh.v1alpha1.Mesh" {
		t.Errorf("mesh %q of %q", mesh.GetName(), envelope(t, mesh).GetSpec().GetTypeUrl())
	}
}

func TestOneUnansweredMessageAndFolding(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory())
	key, spec := permission("p")
	put(t, g.store, written(t, globalHome, key, spec))
	p := dialPeer(t, "slow", g.address, plainFeatures)
	p.openDown(key.Type, resources.TypeMeshTimeout)
	var first *discovery.DeltaDiscoveryResponse
	for range 2 {
		if m := p.receive(); m.GetTypeUrl() == string(key.Type) {
			first = m
		} else {
			p.ack(m)
		}
	}
	for range 10 { // unanswered: no message of this type may follow
		_, spec := permission("p" + time.Now().String())
		put(t, g.store, written(t, globalHome, key, spec))
	}
	gone, goneSpec := permission("came-and-went")
	put(t, g.store, written(t, globalHome, gone, goneSpec))
	remove(t, g.store, gone)
	put(t, g.store, written(t, globalHome, resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: "t"},
		`{"targetRef":{"kind":"Mesh"}}`))
	m := p.receive()
	if m.GetTypeUrl() != string(resources.TypeMeshTimeout) {
		t.Fatalf("got %s before the answer", m.GetTypeUrl())
	}
	p.request(&discovery.DeltaDiscoveryRequest{TypeUrl: string(key.Type), ResponseNonce: "nobody knows it"})
	p.ack(m)
	put(t, g.store, written(t, globalHome, resources.Key{Type: resources.TypeMeshTimeout, Mesh: "default", Name: "t2"},
		`{"targetRef":{"kind":"Mesh"}}`))
	m = p.receive()
	if m.GetTypeUrl() != string(resources.TypeMeshTimeout) {
		t.Fatal("an unknown nonce was taken for an answer")
	}
	p.ack(m)
	p.ack(first)
	m = p.receive()
	if m.GetTypeUrl() != string(key.Type) || len(m.GetResources()) != 1 || len(m.GetRemovedResources()) != 0 {
		t.Errorf("ten changes became %d resources and %v of %s", len(m.GetResources()), m.GetRemovedResources(),
			m.GetTypeUrl())
	}
}

func TestRefusalByPeerIsRememberedAndBlocksNothing(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory())
	bad, badSpec := permission("bad")
	put(t, g.store, written(t, globalHome, bad, badSpec))
	p := dialPeer(t, "picky", g.address, plainFeatures)
	p.openDown(bad.Type)
	m := p.receive()
	name := m.GetResources()[0].GetName()
	p.nack(m, "user error\nsomething is wrong with "+strings.TrimSuffix(name, ".default"))
	good, goodSpec := permission("good")
	put(t, g.store, written(t, globalHome, good, goodSpec))
	m = p.receive()
	if len(m.GetResources()) != 1 || !strings.HasPrefix(m.GetResources()[0].GetName(), "good-") {
		t.Fatalf("got %v", m.GetResources())
	}
	p.ack(m)
	var found bool
	for _, r := range g.Refusals("picky") {
		found = found || r.Name == name && r.ByPeer && r.Version != "" && strings.Contains(r.Reason, "something is wrong")
	}
	if !found {
		t.Errorf("refusals are %+v", g.Refusals("picky"))
	}
	put(t, g.store, written(t, globalHome, bad, `{"default":{}}`),
		written(t, globalHome, bad, `{"default":{"allow":[{"sni":{"type":"Exact","value":"a"}}]}}`))
	m = p.receive()
	p.ack(m)
	eventually(t, "the refusal is over", func() bool {
		for _, r := range g.Refusals("picky") {
			if r.Name == name {
				return false
			}
		}
		return true
	})
}

func TestResumeSendsOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory())
	for _, name := range []string{"same", "other"} {
		key, spec := permission(name)
		put(t, g.store, written(t, globalHome, key, spec))
	}
	p := dialPeer(t, "back", g.address, plainFeatures)
	p.openDown(resources.TypeMeshTrafficPermission)
	have := map[string]string{"gone-x.default": "1"}
	for _, r := range p.receive().GetResources() {
		if strings.HasPrefix(r.GetName(), "same") {
			have[r.GetName()] = r.GetVersion()
		} else {
			have[r.GetName()] = "old"
		}
	}
	q := dialPeer(t, "back", g.address, plainFeatures)
	q.openDown()
	q.subscribe(resources.TypeMeshTrafficPermission, have)
	m := q.receive()
	if len(m.GetResources()) != 1 || !strings.HasPrefix(m.GetResources()[0].GetName(), "other") ||
		len(m.GetRemovedResources()) != 1 || m.GetRemovedResources()[0] != "gone-x.default" {
		t.Errorf("got %v and removed %v", m.GetResources(), m.GetRemovedResources())
	}
}

func TestZonesWordIsOnlyAboutItself(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.Validate = resources.ValidatePeer })
	own, ownSpec := permission("own")
	put(t, g.store, written(t, globalHome, own, ownSpec))
	p := dialPeer(t, "zone-1", g.address, plainFeatures)
	p.openUp()
	service := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "backend"}
	good := wireOf(t, "zone-1", written(t, zoneHome("zone-1"), service, `{"ports":[{"port":80}]}`))
	broken := proto.Clone(good).(*discovery.Resource)
	broken.Name, broken.Resource.Value = "broken.default", []byte("\xff\xff")
	foreign := wireOf(t, "zone-2", written(t, zoneHome("zone-2"), service, `{}`))
	answer := p.send(service.Type, "1", nil, broken, foreign, good)
	text := answer.GetErrorDetail().GetMessage()
	if !strings.Contains(text, "broken.default: ") || !strings.Contains(text, foreign.GetName()+": ") ||
		strings.Contains(text, good.GetName()+": ") {
		t.Errorf("the answer is %q", text)
	}
	held := find(g.store, service.Type, "backend")
	if held == nil || held.Zone() != "zone-1" || count(g.store, service.Type) != 1 {
		t.Fatalf("the good one is %v", held)
	}
	if len(g.Refusals("zone-1")) != 2 {
		t.Errorf("refusals are %+v", g.Refusals("zone-1"))
	}
	mesh := written(t, zoneHome("zone-1"), resources.Key{Type: resources.TypeMesh, Name: "evil"}, `{}`)
	if answer := p.send(resources.TypeMesh, "2", nil, wireOf(t, "zone-1", mesh)); answer.GetErrorDetail() == nil ||
		count(g.store, resources.TypeMesh) != 0 {
		t.Errorf("a zone made a mesh: %v", answer)
	}
	if answer := p.send("NobodyKnows", "3", nil, good); answer.GetErrorDetail() != nil ||
		g.events.count(UnknownType, "NobodyKnows") != 1 {
		t.Errorf("an unknown type was refused: %v", answer)
	}
	revision := g.store.Snapshot().Revision()
	p.send(own.Type, "4", nil) // an empty complete list of permissions
	p.send(own.Type, "5", []string{"own.default", "backend.default", "...", "", foreign.GetName()})
	if g.store.Snapshot().Revision() != revision || find(g.store, own.Type, "own") == nil {
		t.Error("a zone removed what is not its own")
	}
	if answer := p.send(service.Type, "6", []string{good.GetName()}); answer.GetErrorDetail() != nil ||
		count(g.store, service.Type) != 0 {
		t.Errorf("the zone could not remove its own: %v", answer)
	}
}

// TestTypesThatAreNotServedGetNoAnswer checks that a subscription to an unserved type gets no answer: a peer takes an
// empty list to mean that there are no resources, and deletes its own.
func TestTypesThatAreNotServedGetNoAnswer(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory())
	p := dialPeer(t, "plain", g.address, plainFeatures)
	p.openDown()
	for _, unserved := range []resources.Type{"NobodyKnows", resources.TypeDataplane, resources.TypeAccessRole} {
		p.subscribe(unserved, map[string]string{"authority.default": "1"})
	}
	p.subscribe(resources.TypeMesh, nil)
	m := p.receive()
	if m.GetTypeUrl() != string(resources.TypeMesh) {
		t.Fatalf("%s was answered with %d resources, %d removed", m.GetTypeUrl(), len(m.GetResources()),
			len(m.GetRemovedResources()))
	}
	p.ack(m)
	put(t, g.store, written(t, globalHome, resources.Key{Type: resources.TypeMesh, Name: "default"}, `{}`))
	if m := p.receive(); m.GetTypeUrl() != string(resources.TypeMesh) {
		t.Errorf("%s was answered later", m.GetTypeUrl())
	}
}
