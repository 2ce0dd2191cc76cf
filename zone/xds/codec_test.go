package xds

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

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

// TestDenseMessagesAreRefused: two million empty names in a request are refused before they are decoded.
func TestDenseMessagesAreRefused(t *testing.T) {
	t.Parallel()
	dense := mem.BufferSlice{mem.SliceBuffer(strings.Repeat("\x1a\x00", maxRequest/2))}
	if err := newCodec().Unmarshal(dense, &discovery.DiscoveryRequest{}); !errors.Is(err, messages.ErrDense) {
		t.Errorf("%v", err)
	}
}
