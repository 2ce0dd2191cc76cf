package kds

import (
	"errors"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/messages"
)

// TestResponses checks that the codec writes the same message as Protobuf.
func TestResponses(t *testing.T) {
	t.Parallel()
	resource := &discovery.Resource{Name: "r.default", Version: "v1"}
	raw, err := proto.Marshal(resource)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		response *response
		with     int
	}{
		"empty": {&response{}, 0},
		"all": {&response{version: "7 list", typeURL: "Mesh", nonce: "12", identifier: "global",
			removed: []string{"a.b", "", "c"}, payload: &payload{}}, 2},
		"long": {&response{typeURL: "Mesh", nonce: strings.Repeat("9", 300),
			identifier: strings.Repeat("i", 70_000), removed: []string{strings.Repeat("n", 20_000)}, payload: &payload{}}, 1},
		"without resources": {&response{typeURL: "Mesh", nonce: "1", identifier: "zone-1"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.response
			want := &discovery.DeltaDiscoveryResponse{
				SystemVersionInfo: r.version, TypeUrl: r.typeURL, Nonce: r.nonce, RemovedResources: r.removed,
				ControlPlane: &corev3.ControlPlane{Identifier: r.identifier},
			}
			for range c.with {
				e := &encoded{size: len(raw)}
				framed := mem.SliceBuffer(item(raw))
				e.raw.Store(&framed)
				r.resources = append(r.resources, e)
				want.Resources = append(want.Resources, resource)
			}
			buffers, err := newCodec().Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			got := &discovery.DeltaDiscoveryResponse{}
			if err := proto.Unmarshal(buffers.Materialize(), got); err != nil || !proto.Equal(got, want) {
				t.Errorf("wrote %v (%v), want %v", got, err, want)
			}
			if rest := r.rest(); cap(rest) > len(rest)+frameOverhead+len(r.removed)*itemOverhead {
				t.Errorf("%d bytes in %d", len(rest), cap(rest))
			}
		})
	}
}

// TestMessagesLeaveLittleGarbage bounds the allocations for each message to each zone: beside the response its own
// bytes, and the answer one text.
func TestMessagesLeaveLittleGarbage(t *testing.T) {
	framed := mem.SliceBuffer("a resource")
	e := &encoded{size: len(framed)}
	e.raw.Store(&framed)
	m := &response{typeURL: "Mesh", nonce: "1", identifier: "global", payload: &payload{resources: []*encoded{e}}}
	codec := newCodec()
	if n := testing.AllocsPerRun(100, func() {
		if _, err := codec.Marshal(m); err != nil {
			t.Fatal(err)
		}
	}); n != 1 {
		t.Errorf("a message makes %v objects, want 1", n)
	}
	ack, err := proto.Marshal(&discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "zone-1"}, TypeUrl: "Mesh",
		ResponseNonce: "2FJ7Q4XKZRM5A"})
	if err != nil {
		t.Fatal(err)
	}
	data, into := mem.BufferSlice{mem.SliceBuffer(ack)}, new(arrival)
	if n := testing.AllocsPerRun(100, func() {
		if err := codec.Unmarshal(data, into); err != nil {
			t.Fatal(err)
		}
	}); n != 1 {
		t.Errorf("an answer makes %v objects, want 1", n)
	}
}

// TestDenseMessagesAreRefused checks that five million empty resources in ten MiB are refused before they are decoded.
func TestDenseMessagesAreRefused(t *testing.T) {
	t.Parallel()
	dense := mem.BufferSlice{mem.SliceBuffer(strings.Repeat("\x12\x00", MaxMessageSize/2))}
	if err := newCodec().Unmarshal(dense, &discovery.DeltaDiscoveryResponse{}); !errors.Is(err, messages.ErrDense) {
		t.Errorf("%v", err)
	}
}
