package xds

import (
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Field numbers of TypedExtensionConfig and Any.
const (
	extensionName, extensionConfig = 1, 2
	anyTypeURL, anyValue           = 1, 2
)

// newExtension validates a filter and returns it as extension discovery serves it: as the typed_config of a
// TypedExtensionConfig. It writes that frame itself and marshals the filter, which may be large, in place. Nested
// messages would be marshalled, copied and measured twice.
func newExtension(name string, filter message) (*resource, error) {
	if name == "" || !utf8.ValidString(name) {
		return nil, fmt.Errorf("%w: %q is not the name of a filter", ErrConfig, name)
	}
	if err := filter.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	marshal := proto.MarshalOptions{Deterministic: true}
	url, size := typeURLOf(filter), marshal.Size(filter)
	config := sizeOfBytes(anyTypeURL, len(url))
	if size > 0 {
		config += sizeOfBytes(anyValue, size)
	}
	whole := sizeOfBytes(extensionName, len(name)) + sizeOfBytes(extensionConfig, config)

	b := make([]byte, 0, whole)
	b = protowire.AppendString(protowire.AppendTag(b, extensionName, protowire.BytesType), name)
	b = protowire.AppendVarint(protowire.AppendTag(b, extensionConfig, protowire.BytesType), uint64(config)) //nolint:gosec // a length
	b = protowire.AppendString(protowire.AppendTag(b, anyTypeURL, protowire.BytesType), url)
	if size > 0 {
		b = protowire.AppendVarint(protowire.AppendTag(b, anyValue, protowire.BytesType), uint64(size)) //nolint:gosec // a length
		var err error
		marshal.UseCachedSize = true
		if b, err = marshal.MarshalAppend(b, filter); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	if len(b) != whole {
		return nil, fmt.Errorf("%w: the filter %s has %d bytes and not %d: it changed meanwhile", ErrConfig, name, len(b), whole)
	}
	return resourceOf(name, &anypb.Any{TypeUrl: typeURLs[kindExtension], Value: b}), nil
}

// sizeOfBytes is the size of a field with n bytes.
func sizeOfBytes(field protowire.Number, n int) int {
	return protowire.SizeTag(field) + protowire.SizeBytes(n)
}
