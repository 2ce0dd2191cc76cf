package kds

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
)

// FuzzAnswer checks that decodeAnswer agrees with Protobuf, and that it decodes a plain ACK.
func FuzzAnswer(f *testing.F) {
	node := &corev3.Node{Id: "zone-1"}
	for _, c := range []struct {
		m    *discovery.DeltaDiscoveryRequest
		hand bool
	}{
		{&discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: "MeshTrafficPermission", ResponseNonce: "17"}, true},
		{&discovery.DeltaDiscoveryRequest{TypeUrl: "Mesh", ResponseNonce: "1"}, true},
		{&discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: "Mesh"}, false},
		{&discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: "Nobody", ResponseNonce: "1"}, false},
		{&discovery.DeltaDiscoveryRequest{Node: nodeOf("zone-1", Peer{}), TypeUrl: "Mesh", ResponseNonce: "1"}, false},
		{&discovery.DeltaDiscoveryRequest{Node: &corev3.Node{}, TypeUrl: "Mesh", ResponseNonce: "1"}, false},
		{&discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: "Mesh", ResponseNonce: "1",
			ErrorDetail: &status.Status{Message: "no"}}, false},
		{&discovery.DeltaDiscoveryRequest{Node: node, TypeUrl: "Mesh", ResponseNonce: "1",
			ResourceNamesSubscribe: []string{"*"}}, false},
	} {
		raw, err := proto.Marshal(c.m)
		if err != nil {
			f.Fatal(err)
		}
		if got := decodeAnswer(raw, new(arrival)); got != c.hand {
			f.Errorf("%v: decoded by hand %v, want %v", c.m, got, c.hand)
		}
		f.Add(raw)
	}
	full, err := proto.Marshal(&discovery.DeltaDiscoveryRequest{Node: nodeOf("zone-2", Peer{Instance: "i"}), TypeUrl: "Zone",
		ResponseNonce: "2", ResourceNamesSubscribe: []string{"*"}, ResourceNamesUnsubscribe: []string{"a"},
		InitialResourceVersions: map[string]string{"a": "b"}, ErrorDetail: &status.Status{Message: "no"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("\x0a\x03\x0a\x01\xff\x12\x04Mesh\x32\x01\xff"))
	f.Add([]byte("2\x0600\x930002\x010"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		// It is used again after a message that has all of it.
		into := &arrival{node: corev3.Node{Id: "another"}}
		if err := proto.Unmarshal(full, &into.request); err != nil {
			t.Fatal(err)
		}
		var want discovery.DeltaDiscoveryRequest
		if !decodeAnswer(raw, into) {
			if !proto.Equal(&into.request, &want) {
				t.Errorf("left %v behind", &into.request)
			}
			return
		}
		if err := proto.Unmarshal(raw, &want); err != nil || !proto.Equal(&into.request, &want) {
			t.Errorf("%q is %v by hand, and %v by Protobuf (%v)", raw, &into.request, &want, err)
		}
	})
}
