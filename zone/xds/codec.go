package xds

import (
	"fmt"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/messages"
)

// grpcBuffers is the size up to which gRPC's own buffers fit. Its next size is 1 MiB, and each message clears a whole
// buffer.
const grpcBuffers = 32 << 10

// buffers serve the messages of proxies with many policies or listeners.
var buffers = mem.NewTieredBufferPool(64<<10, 128<<10, 256<<10, 512<<10, 1<<20)

// codec is the codec of package messages with suitable buffers. It has the same name on the wire.
type codec struct{ encoding.CodecV2 }

func newCodec() encoding.CodecV2 { return codec{messages.Codec()} }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if r, ok := v.(*discovery.DeltaDiscoveryResponse); ok {
		if parts := inParts(r); parts != nil {
			return parts, nil
		}
	}
	m, ok := v.(proto.Message)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	size := proto.Size(m)
	if size <= grpcBuffers {
		return c.CodecV2.Marshal(v)
	}
	buffer := buffers.Get(size)
	if _, err := (proto.MarshalOptions{UseCachedSize: true}).MarshalAppend((*buffer)[:0], m); err != nil {
		buffers.Put(buffer)
		return nil, fmt.Errorf("encode a response: %w", err)
	}
	return mem.BufferSlice{mem.NewBuffer(buffer, buffers)}, nil
}
