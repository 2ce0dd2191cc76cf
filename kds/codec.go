package kds

import (
	"fmt"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that ours stands in front of
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// response is a DeltaDiscoveryResponse whose resources are encoded already, in memory that all streams share: sending one
// to a thousand zones copies none of it before the transport does. It goes through SendMsg with a codec of newCodec.
type response struct {
	// frame is everything but the resources.
	frame *discovery.DeltaDiscoveryResponse
	*bundle
}

// resourcesField is DeltaDiscoveryResponse.resources.
const resourcesField protowire.Number = 2

// item puts an encoded resource into the form that it has inside a response: tag, length, bytes.
func item(resource []byte) []byte {
	b := make([]byte, 0, len(resource)+itemOverhead)
	b = protowire.AppendTag(b, resourcesField, protowire.BytesType)
	return protowire.AppendBytes(b, resource)
}

// itemOverhead is the most that a list item costs beside its bytes: a tag and a length.
const itemOverhead = 6

// codec is the protobuf codec, which also takes a response. It has the same name on the wire.
type codec struct{ encoding.CodecV2 }

func newCodec() encoding.CodecV2 { return codec{encoding.GetCodecV2("proto")} }

// Marshal implements encoding.CodecV2. The items are shared and never freed: mem.SliceBuffer does not count references.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	r, ok := v.(*response)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	frame, err := proto.Marshal(r.frame)
	if err != nil {
		return nil, fmt.Errorf("encode a response: %w", err)
	}
	if r.buffer != nil {
		return mem.BufferSlice{r.buffer, mem.SliceBuffer(frame)}, nil
	}
	out := make(mem.BufferSlice, 0, len(r.resources)+1)
	for _, i := range r.resources {
		out = append(out, mem.SliceBuffer(i.bytes()))
	}
	return append(out, mem.SliceBuffer(frame)), nil
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(*discovery.DeltaDiscoveryRequest); ok && len(data) == 1 && decodeAnswer(data[0].ReadOnlyData(), m) {
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}
