// Package messages limits the cost of decoding a peer's protobuf message. The size of a message is limited elsewhere;
// in memory, a message of many tiny elements is up to sixty times as large as on the wire. Callers are judged before
// their messages are decoded at all. The package also converts messages of the previous version. It imports nothing of
// Causeway.
package messages

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that Codec wraps
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	// small is the size in bytes up to which a message is decoded without a check.
	small = 64 << 10
	// free is the allowed cost of any message, in bytes, and factor what each of its bytes adds. Small resources with
	// short names need a factor of 6.
	free   = 1 << 20
	factor = 8
	// messageCost, entryCost and valueCost estimate the memory of an element in addition to its own bytes: of a
	// message, of a map entry, and of anything else.
	messageCost, entryCost, valueCost = 128, 64, 16
	// maxDepth is the deepest nesting of messages. Those of xDS nest less than twenty deep.
	maxDepth = 100
)

// ErrDense reports that a message would take too much memory for its size, or nests too deep. The peer's stream ends.
var ErrDense = errors.New("message refused")

// Codec returns the protobuf codec that calls Check before it decodes a message of more than 64 KiB. It has the same
// name on the wire, and is safe for concurrent use.
func Codec() encoding.CodecV2 { return codec{encoding.GetCodecV2("proto")} }

type codec struct{ encoding.CodecV2 }

// Unmarshal implements encoding.CodecV2. Errors: ErrDense, and those of decoding.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(proto.Message)
	if !ok || data.Len() <= small {
		return c.CodecV2.Unmarshal(data, v)
	}
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	if err := Check(m, buffer.ReadOnlyData()); err != nil {
		return err
	}
	return proto.Unmarshal(buffer.ReadOnlyData(), m)
}

// Check estimates the memory for decoding a message of m's type. It returns ErrDense if that exceeds 1 MiB plus eight
// times the size of the message. It does not otherwise validate the message.
func Check(m proto.Message, data []byte) error {
	left := free + len(data)*factor
	if err := spend(m.ProtoReflect().Descriptor(), data, &left, maxDepth); err != nil {
		return fmt.Errorf("%w: %d bytes: %w", ErrDense, len(data), err)
	}
	return nil
}

var (
	errMany = fmt.Errorf("its elements take more than %d times that: send fewer in a message", factor)
	errDeep = fmt.Errorf("more than %d messages nested in each other", maxDepth)
)

// spend subtracts the cost of the elements of one message, and of nested ones, from left.
func spend(d protoreflect.MessageDescriptor, data []byte, left *int, depth int) error {
	if depth == 0 {
		return errDeep
	}
	fields := d.Fields()
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil // decoding reports the reason
		}
		rest := data[n:]
		n = protowire.ConsumeFieldValue(number, kind, rest)
		if n < 0 {
			return nil
		}
		field := fields.ByNumber(number)
		if *left -= costOf(field, kind, n); *left < 0 {
			return errMany
		}
		if kind == protowire.BytesType && field != nil && field.Message() != nil {
			inner, _ := protowire.ConsumeBytes(rest)
			if err := spend(field.Message(), inner, left, depth-1); err != nil {
				return err
			}
		}
		data = rest[n:]
	}
	return nil
}

// costOf estimates the memory of a field of size bytes, without nested messages. field is nil if the message's type has
// none with its number.
func costOf(field protoreflect.FieldDescriptor, kind protowire.Type, size int) int {
	switch {
	case field == nil || kind != protowire.BytesType:
		return valueCost + size
	case field.IsMap():
		return entryCost
	case field.Message() != nil:
		return messageCost
	case field.Kind() == protoreflect.StringKind || field.Kind() == protoreflect.BytesKind:
		return valueCost + size
	default: // a packed list of numbers, of which each byte may be one
		return valueCost + 8*size
	}
}
