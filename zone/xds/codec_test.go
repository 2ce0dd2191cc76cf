package xds

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/causeway-mesh/causeway/messages"
)

// TestCodec: messages of all sizes are what protobuf makes of them, also in buffers that others used before.
func TestCodec(t *testing.T) {
	t.Parallel()
	c := newCodec()
	for range 2 {
		for _, size := range []int{0, grpcBuffers - 100, grpcBuffers, grpcBuffers + 1, 64 << 10, 200 << 10, 3 << 20} {
			m := &discovery.DeltaDiscoveryResponse{Nonce: strings.Repeat("n", size)}
			want, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Materialize(), want) {
				t.Errorf("a message of %d bytes comes out as %d other ones", len(want), got.Len())
			}
			got.Free()
		}
	}
	if _, err := c.Marshal(&discovery.DeltaDiscoveryResponse{Nonce: "\xff" + strings.Repeat("n",
		grpcBuffers)}); err == nil {
		t.Error("invalid UTF-8 is encoded")
	}
}

// TestResponsesAreMarshalledInParts: whatever a response has, its parts are what protobuf makes of it, and the content of
// large resources is not copied.
func TestResponsesAreMarshalledInParts(t *testing.T) {
	t.Parallel()
	c, inPlace := newCodec(), 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := randomResponse(r)
		if r.IntN(4) == 0 {
			setAny(r, m.ProtoReflect())
		}
		want, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Materialize(), want) {
			t.Fatalf("seed %d: %v\ncomes out as %x\nwant %x", seed, m, got.Materialize(), want)
		}
		for _, one := range m.Resources {
			for _, part := range got {
				if value := one.GetResource().GetValue(); len(value) > 0 && part.Len() > 0 && &part.ReadOnlyData()[0] == &value[0] {
					inPlace++
				}
			}
		}
		got.Free()
	}
	if inPlace < 1000 {
		t.Errorf("of the resources of 2000 responses, %d are sent from where they are", inPlace)
	}
	for _, broken := range []*discovery.DeltaDiscoveryResponse{
		{TypeUrl: "t", Nonce: "\xff", Resources: []*discovery.Resource{resourceOf("n", &anypb.Any{TypeUrl: "t", Value: make([]byte, 2*copied)}).delta}},
		{TypeUrl: "t", Nonce: "1", Resources: []*discovery.Resource{resourceOf("\xff", &anypb.Any{TypeUrl: "t", Value: make([]byte, 2*copied)}).delta}},
		{TypeUrl: "t", Nonce: "1", RemovedResources: []string{"\xff"}, Resources: []*discovery.Resource{resourceOf("n", &anypb.Any{TypeUrl: "t", Value: make([]byte, 2*copied)}).delta}},
	} {
		if _, err := c.Marshal(broken); err == nil {
			t.Errorf("invalid UTF-8 is encoded: %.100q", broken)
		}
	}
}

// randomResponse returns a response of up to four resources, with texts and contents that may be empty.
func randomResponse(r *rand.Rand) *discovery.DeltaDiscoveryResponse {
	text := func(most int) string { return strings.Repeat("x", r.IntN(most)) }
	m := &discovery.DeltaDiscoveryResponse{TypeUrl: text(100), Nonce: text(4)}
	for range r.IntN(5) {
		m.Resources = append(m.Resources, &discovery.Resource{Name: text(200), Version: text(25),
			Resource: &anypb.Any{TypeUrl: text(100), Value: make([]byte, r.IntN(1<<r.IntN(18)))}})
	}
	for range r.IntN(3) {
		m.RemovedResources = append(m.RemovedResources, text(200))
	}
	return m
}

// setAny sets a field of a message, or of one of the messages in it, or one that is unknown.
func setAny(r *rand.Rand, m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	f := fields.Get(r.IntN(fields.Len()))
	switch {
	case r.IntN(10) == 0:
		m.SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 1))
	case f.IsMap():
	case f.IsList() && f.Message() != nil:
		if list := m.Mutable(f).List(); list.Len() == 0 || r.IntN(2) == 0 {
			list.AppendMutable()
		} else {
			setAny(r, list.Get(r.IntN(list.Len())).Message())
		}
	case f.IsList():
		m.Mutable(f).List().Append(protoreflect.ValueOfString("more"))
	case f.Message() != nil:
		if inner := m.Mutable(f).Message(); r.IntN(2) == 0 {
			setAny(r, inner)
		}
	case f.Kind() == protoreflect.StringKind:
		m.Set(f, protoreflect.ValueOfString("another"))
	}
}

// TestPartsOfResponsesAreFew: a large listener in a response costs as much as a small one.
func TestPartsOfResponsesAreFew(t *testing.T) {
	c, m := newCodec(), &discovery.DeltaDiscoveryResponse{TypeUrl: typeURLs[kindListener], Nonce: "12",
		Resources: []*discovery.Resource{resourceOf("self_inbound_dp_http-port", &anypb.Any{TypeUrl: typeURLs[kindListener], Value: make([]byte, 20<<10)}).delta}}
	const most = 3 // around the resource, and two lists
	if n := testing.AllocsPerRun(100, func() {
		if _, err := c.Marshal(m); err != nil {
			t.Fatal(err)
		}
	}); n > most {
		t.Errorf("%v allocations, want %d", n, most)
	}
}

// TestDenseMessagesAreRefused: two million empty names in a request are refused before they are decoded.
func TestDenseMessagesAreRefused(t *testing.T) {
	t.Parallel()
	dense := mem.BufferSlice{mem.SliceBuffer(strings.Repeat("\x1a\x00", maxRequest/2))}
	if err := newCodec().Unmarshal(dense, &discovery.DiscoveryRequest{}); !errors.Is(err, messages.ErrDense) {
		t.Errorf("%v", err)
	}
}
