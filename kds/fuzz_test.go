package kds

import (
	"context"
	"errors"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/store"
)

func testReceiver(d exchange.Direction, s store.Store) *receiver {
	session := newSession(context.Background(), 1, "zone-1", silent{}, time.Now)
	return newReceiver(receiverConfig{
		arrival: exchange.Arrival{Origin: exchange.Origin{Direction: d, Zone: "zone-1"},
			SystemNamespace: resources.DefaultSystemNamespace},
		store: s, mapping: exchange.NewMapping(), validate: resources.ValidateSpec, refusals: tracker.NewRefusals(time.Now, nil),
		versions: newCopyVersions(),
		node:     nodeOf("zone-1", Peer{}), sendTimeout: time.Second, session: session, log: testLog(),
	})
}

// FuzzResponse feeds a receiver what a peer could send, on either side: it must answer each message, never fail, and
// never touch another owner's resources.
func FuzzResponse(f *testing.F) {
	seed := func(m *discovery.DeltaDiscoveryResponse) {
		raw, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(true, raw)
		f.Add(false, raw)
	}
	key, spec := permission("p")
	for _, zone := range []string{"zone-1", "zone-2"} {
		policy := written(f, zoneHome(zone), key, spec)
		out, _ := exchange.NewMapping().Outbound(policy, &exchange.Audience{Direction: exchange.ZoneToGlobal,
			Zone: zone, Features: exchange.OwnFeatures()})
		wire, err := Encode(out)
		if err != nil {
			f.Fatal(err)
		}
		seed(&discovery.DeltaDiscoveryResponse{TypeUrl: string(key.Type), Nonce: "1",
			Resources: []*discovery.Resource{wire}, RemovedResources: []string{"own.default", "a.b.c"},
			SystemVersionInfo: "7 list more"})
	}
	dataplane := written(f, zoneHome("zone-1"), resources.Key{Type: resources.TypeDataplane, Mesh: "default",
		Name: "dp"}, `{"networking":{"address":"1.2.3.4","inbound":[{"port":80,"tags":{"kuma.io/zone":"x","kuma.io/service":"a"}}]}}`)
	out, _ := exchange.NewMapping().Outbound(dataplane, &exchange.Audience{Direction: exchange.ZoneToGlobal,
		Zone: "zone-1"})
	wire, _ := Encode(out)
	seed(&discovery.DeltaDiscoveryResponse{TypeUrl: "Dataplane", Resources: []*discovery.Resource{wire},
		SystemVersionInfo: "7 resume"})
	route := written(f, zoneHome("zone-1"), resources.Key{Type: resources.TypeMeshHTTPRoute, Mesh: "default",
		Namespace: "a", Name: "r"},
		`{"to":[{"targetRef":{"kind":"MeshService","name":"b"},"rules":[{"default":{"backendRefs":[{"kind":"MeshService","name":"b","port":1}]}}]}]}`)
	out, _ = exchange.NewMapping().Outbound(route, &exchange.Audience{Direction: exchange.ZoneToGlobal, Zone: "zone-1"})
	wire, _ = Encode(out)
	seed(&discovery.DeltaDiscoveryResponse{TypeUrl: "MeshHTTPRoute", Resources: []*discovery.Resource{wire, wire, nil}})

	f.Fuzz(func(t *testing.T, up bool, raw []byte) {
		var m discovery.DeltaDiscoveryResponse
		if proto.Unmarshal(raw, &m) != nil {
			return
		}
		checkReceived(t, up, &m)
	})
}

// FuzzResource is FuzzResponse with a valid envelope, so that mapping and rules see the rest.
func FuzzResource(f *testing.F) {
	for _, seed := range []struct{ typ, spec, namespace, references string }{
		{"MeshTrafficPermission", `{"default":{"deny":[{"spiffeId":{"type":"Exact","value":"spiffe://a/b"},"path":{"type":"Exact","value":"/x"}}]}}`, "a", ""},
		{"MeshHTTPRoute", `{"to":[{"targetRef":{"kind":"MeshService","name":"b"},"rules":[{"default":{"backendRefs":[{"kind":"MeshService","name":"b","port":1}],"filters":[{"requestMirror":{"backendRef":{"kind":"MeshMultiZoneService","name":"c"}}}]}}]}]}`, "a", `{"to[0].targetRef":{"name":"b","namespace":"c"}}`},
		{"Mesh", ``, "", ""}, {"MeshTrust", `{"trustDomain":"a","caBundles":[{"type":"Pem","pem":{"value":"x"}}]}`, "", ""},
	} {
		f.Add(true, seed.typ, "r", "default", []byte(seed.spec), seed.namespace, seed.references, "zone-2", "r.default",
			"7 list more")
		f.Add(false, seed.typ, "r", "default", []byte(seed.spec), seed.namespace, seed.references, "", "", "")
	}
	f.Fuzz(func(t *testing.T, up bool, typ, name, mesh string, spec []byte, namespace, references, zone, removed,
		said string) {
		d, ok := resources.Lookup(resources.Type(typ))
		if !ok {
			return
		}
		wireSpec := &anypb.Any{Value: spec}
		if d.Codec == resources.Protobuf {
			message, err := newMessage(d.Type)
			if err != nil || protojson.Unmarshal(spec, message) != nil {
				return
			}
			if wireSpec, err = anypb.New(message); err != nil {
				return
			}
		}
		if d.Scope == resources.ScopeGlobal {
			mesh = ""
		}
		labels := map[string]string{resources.LabelNamespace: namespace, resources.LabelZone: zone,
			resources.LabelReferences: references, resources.LabelDisplayName: name}
		if up {
			extra := []string{"zone-1"}
			if namespace != "" {
				extra = append(extra, namespace)
			}
			name = hashing.Name(mesh, name, extra...)
		}
		value, err := proto.Marshal(&meshpb.KumaResource{Meta: &meshpb.KumaResource_Meta{Name: name, Mesh: mesh,
			Labels: labels}, Spec: wireSpec})
		if err != nil {
			return // not UTF-8
		}
		item := &discovery.Resource{Name: exchange.WireName(name, mesh), Version: "1",
			Resource: &anypb.Any{TypeUrl: resourceTypeURL, Value: value}}
		checkReceived(t, up, &discovery.DeltaDiscoveryResponse{TypeUrl: typ, Nonce: "1",
			Resources: []*discovery.Resource{item}, RemovedResources: []string{removed}, SystemVersionInfo: said})
	})
}

// checkReceived gives m to a receiver, twice, and checks the effects.
func checkReceived(t *testing.T, up bool, m *discovery.DeltaDiscoveryResponse) {
	t.Helper()
	key, spec := permission("p")
	direction, home := exchange.GlobalToZone, zoneHome("zone-1")
	if up {
		direction, home = exchange.ZoneToGlobal, globalHome
	}
	s := store.NewMemory()
	own := written(t, home, resources.Key{Type: key.Type, Mesh: "default", Name: "own"}, spec)
	other := written(t, zoneHome("zone-2"), resources.Key{Type: resources.TypeMeshService, Mesh: "default",
		Name: "other"}, `{}`)
	put(t, s, own, other, written(t, globalHome, ZoneKey("zone-1"), `{}`))
	revision := s.Snapshot().Get(own.Key).Revision
	v := testReceiver(direction, s)
	for range 2 {
		answer, err := v.handle(context.Background(), m)
		if err != nil || answer.GetResponseNonce() != m.GetNonce() || answer.GetTypeUrl() != m.GetTypeUrl() {
			t.Fatalf("answer %v, error %v", answer, err)
		}
	}
	for _, untouched := range []resources.Key{own.Key, other.Key} {
		if held := s.Snapshot().Get(untouched); held == nil || held.Revision != revision {
			t.Fatalf("%s is %v", untouched, held)
		}
	}
	for _, d := range resources.Stored() {
		for r := range s.Snapshot().List(store.Query{Type: d.Type}) {
			if r.Key == own.Key || r.Key == other.Key || r.Key == ZoneKey("zone-1") {
				continue
			}
			if up && r.Zone() != "zone-1" || !up && (r.Labels[resources.LabelOrigin] != resources.OriginGlobal ||
				r.Zone() == "zone-1") {
				t.Fatalf("%s has labels %v", r.Key, r.Labels)
			}
		}
	}
}

// recordingStream records what a sender sends.
type recordingStream struct {
	sent []*discovery.DeltaDiscoveryResponse
}

func (r *recordingStream) SendMsg(m any) error {
	buffers, err := newCodec().Marshal(m)
	if err != nil {
		return err
	}
	defer buffers.Free()
	var out discovery.DeltaDiscoveryResponse
	if err := proto.Unmarshal(buffers.Materialize(), &out); err != nil {
		return err
	}
	r.sent = append(r.sent, &out)
	return openFrame(&out, true)
}

func (*recordingStream) Recv() (*discovery.DeltaDiscoveryRequest, error) {
	return nil, context.Canceled
}

// FuzzRequest feeds a sender what a peer could request, between writes: it must not fail, and never have two unanswered
// messages of a type.
func FuzzRequest(f *testing.F) {
	for _, m := range []*discovery.DeltaDiscoveryRequest{
		{TypeUrl: "MeshTrafficPermission", Node: nodeOf("zone-1", Peer{Features: exchange.OwnFeatures()}),
			ResourceNamesSubscribe: []string{"*"}, InitialResourceVersions: map[string]string{"a": "b"}},
		{TypeUrl: "MeshTrafficPermission", ResponseNonce: "1"}, {TypeUrl: "Nobody", ResponseNonce: "9"}, {TypeUrl: "Zone"},
	} {
		raw, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, raw, byte(3))
	}
	f.Fuzz(func(t *testing.T, first, second []byte, writes byte) {
		s := store.NewMemory()
		put(t, s, written(t, globalHome, ZoneKey("zone-1"), `{}`))
		sender := newSender(senderConfig{
			direction: exchange.GlobalToZone, zone: "zone-1", identifier: "global", store: s, pace: unpaced{s},
			filter: exchange.NewFilter(), encoder: newEncoder(exchange.NewMapping(), nil),
			refusals: tracker.NewRefusals(time.Now, nil), maxMessage: 512, maxWhole: MaxMessageSize, sendTimeout: time.Second,
			answerTimeout: time.Minute,
			now:           time.Now, session: newSession(context.Background(), 1, "zone-1", silent{}, time.Now), log: testLog(),
			inspect: checkInvariants(t),
		})
		stream := &recordingStream{}
		sender.stream = stream
		for i, raw := range [][]byte{first, second, first} {
			var m discovery.DeltaDiscoveryRequest
			if proto.Unmarshal(raw, &m) != nil {
				return
			}
			for j := range writes % 8 {
				key, spec := permission(string(rune('a'+j)) + string(rune('a'+i)))
				put(t, s, written(t, globalHome, key, spec))
			}
			before := len(stream.sent)
			if m.GetResponseNonce() == "1" && before > 0 {
				m.ResponseNonce = stream.sent[before-1].GetNonce()
			}
			if !sender.tryAnswer(&m) {
				err := sender.handle(&m)
				if errors.Is(err, ErrNotAllowed) {
					return // it names another zone: its session ends
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := sender.look(); err != nil {
				t.Fatal(err)
			}
			if err := sender.sendReady(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			types := map[string]int{}
			for _, sent := range stream.sent[before:] {
				if types[sent.GetTypeUrl()]++; types[sent.GetTypeUrl()] > 1 {
					t.Fatalf("two unanswered messages of %s", sent.GetTypeUrl())
				}
			}
		}
	})
}
