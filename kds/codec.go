package kds

import (
	"slices"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/causeway-mesh/causeway/messages"
)

// response is a DeltaDiscoveryResponse whose resources are already encoded, in memory that all streams share: sending
// one to a thousand zones copies nothing before the transport does. Send it by SendMsg with a codec of newCodec.
type response struct {
	// version is system_version_info; identifier is control_plane.identifier.
	version, typeURL, nonce, identifier string
	removed                             []string
	*payload
	// compressed, if not nil, is sent in place of the type and the resources; such a peer needs no identifier either.
	compressed *mem.SliceBuffer

	// tail and buffers hold what Marshal returns, so that a message to each zone does not allocate each of its parts.
	tail    mem.SliceBuffer
	buffers [2]mem.Buffer
}

// Field numbers of DeltaDiscoveryResponse, and of the ControlPlane in it.
const (
	responseVersion      protowire.Number = 1
	resourcesField       protowire.Number = 2
	responseTypeURL      protowire.Number = 4
	responseNonce        protowire.Number = 5
	responseRemoved      protowire.Number = 6
	responseControlPlane protowire.Number = 7
	controlPlaneID       protowire.Number = 1
)

// rest encodes all fields but the resources, and what they are compressed with.
func (r *response) rest() []byte {
	typeURL := r.typeURL
	if r.compressed != nil {
		typeURL = ""
	}
	size := len(r.version) + len(r.typeURL) + len(r.nonce) + len(r.identifier) + frameOverhead
	for _, name := range r.removed {
		size += len(name) + itemOverhead
	}
	b := make([]byte, 0, size)
	for _, f := range [...]struct {
		number protowire.Number
		value  string
	}{{responseVersion, r.version}, {responseTypeURL, typeURL}, {responseNonce, r.nonce}} {
		if f.value != "" {
			b = protowire.AppendString(protowire.AppendTag(b, f.number, protowire.BytesType), f.value)
		}
	}
	for _, name := range r.removed {
		b = protowire.AppendString(protowire.AppendTag(b, responseRemoved, protowire.BytesType), name)
	}
	if r.compressed != nil {
		return b
	}
	b = protowire.AppendTag(b, responseControlPlane, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(protowire.SizeTag(controlPlaneID)+protowire.SizeBytes(len(r.identifier))))
	return protowire.AppendString(protowire.AppendTag(b, controlPlaneID, protowire.BytesType), r.identifier)
}

// item encodes a resource as it stands inside a response: tag, length, bytes.
func item(resource []byte) []byte {
	b := make([]byte, 0, len(resource)+itemOverhead)
	b = protowire.AppendTag(b, resourcesField, protowire.BytesType)
	return protowire.AppendBytes(b, resource)
}

const (
	// itemOverhead is the largest overhead of a list item: a tag and a length.
	itemOverhead = 6
	// frameOverhead is the overhead of all fields that occur once in a message.
	frameOverhead = 5 * itemOverhead
)

// codec is the codec of package messages, and also encodes a response. It has the same name on the wire.
type codec struct{ encoding.CodecV2 }

func newCodec() encoding.CodecV2 { return codec{messages.Codec()} }

// Marshal implements encoding.CodecV2. The items are shared and never freed: mem.SliceBuffer does not count references.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	r, ok := v.(*response)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	r.tail = r.rest()
	out := mem.BufferSlice(r.buffers[:0])
	switch {
	case r.compressed != nil:
		out = append(out, r.compressed)
	case r.payload == nil:
	case r.buffer != nil:
		out = append(out, r.buffer)
	default:
		out = slices.Grow(out, len(r.resources)+1)
		for _, i := range r.resources {
			out = append(out, i.raw.Load())
		}
	}
	return append(out, &r.tail), nil
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(*arrival); ok {
		if len(data) == 1 && decodeAnswer(data[0].ReadOnlyData(), m) || c.resumes(data, m) {
			return nil
		}
		v = &m.request
	}
	return c.CodecV2.Unmarshal(data, v)
}

// resumes decodes what decodeResume does.
func (c codec) resumes(data mem.BufferSlice, m *arrival) bool {
	if data.Len() <= maxNonce {
		return false
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	return decodeResume(whole.ReadOnlyData(), m)
}
