package xds

import (
	"unicode/utf8"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of a DeltaDiscoveryResponse, and of a Resource in it.
const (
	responseResources, responseType, responseNonce, responseRemoved protowire.Number = 2, 4, 5, 6
	resourceVersion, resourceAny, resourceName                      protowire.Number = 1, 2, 3
)

const (
	// copied is the size of resources, in bytes, up to which a copy costs less than parts.
	copied = 1 << 10
	// fieldBytes is the most that a field adds to its content: a tag of one byte, and a length below 32 GiB.
	fieldBytes = 6
)

// inParts marshals a response without copying the content of its resources, which streams share. What is around them is in
// one buffer of its own. Together, the parts are what protobuf makes of the response. It returns nil for one that is small,
// or has fields that it does not know.
func inParts(r *discovery.DeltaDiscoveryResponse) mem.BufferSlice {
	content, around := 0, len(r.TypeUrl)+len(r.Nonce)+2*fieldBytes
	for _, one := range r.Resources {
		if !plainResource(one) {
			return nil
		}
		content += len(one.Resource.Value)
		around += len(one.Version) + len(one.Resource.TypeUrl) + len(one.Name) + 6*fieldBytes
	}
	for _, name := range r.RemovedResources {
		around += len(name) + fieldBytes
	}
	if content <= copied || !plainResponse(r) {
		return nil
	}
	var (
		buffer = make([]byte, 0, around) // it has room for all, so that parts of it stay where they are
		parts  = make([]mem.SliceBuffer, 0, 2*len(r.Resources)+1)
		begin  int
	)
	for _, one := range r.Resources {
		buffer = appendUntilValue(buffer, one)
		parts = append(parts, buffer[begin:], one.Resource.Value)
		begin = len(buffer)
		buffer = appendText(buffer, resourceName, one.Name)
	}
	buffer = appendText(buffer, responseType, r.TypeUrl)
	buffer = appendText(buffer, responseNonce, r.Nonce)
	for _, name := range r.RemovedResources {
		buffer = appendText(buffer, responseRemoved, name)
	}
	parts = append(parts, buffer[begin:])
	out := make(mem.BufferSlice, len(parts))
	for i := range parts {
		out[i] = &parts[i]
	}
	return out
}

// appendUntilValue appends a resource of a response, up to the content of its Any.
func appendUntilValue(to []byte, r *discovery.Resource) []byte {
	packed := sizeOfBytes(anyTypeURL, len(r.Resource.TypeUrl)) + sizeOfBytes(anyValue, len(r.Resource.Value))
	to = appendHead(to, responseResources, sizeOfBytes(resourceVersion, len(r.Version))+
		sizeOfBytes(resourceAny, packed)+sizeOfBytes(resourceName, len(r.Name)))
	to = appendText(to, resourceVersion, r.Version)
	to = appendHead(to, resourceAny, packed)
	to = appendText(to, anyTypeURL, r.Resource.TypeUrl)
	return appendHead(to, anyValue, len(r.Resource.Value))
}

// appendHead appends what comes before the content of a field.
func appendHead(to []byte, field protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(to, field, protowire.BytesType), uint64(size)) //nolint:gosec // a length
}

func appendText(to []byte, field protowire.Number, text string) []byte {
	return append(appendHead(to, field, len(text)), text...)
}

// plainResponse reports whether a response has those fields of which inParts knows, and no others.
func plainResponse(r *discovery.DeltaDiscoveryResponse) bool {
	for _, name := range r.RemovedResources {
		if !utf8.ValidString(name) {
			return false
		}
	}
	return isText(r.TypeUrl) && isText(r.Nonce) && r.SystemVersionInfo == "" && r.ControlPlane == nil &&
		len(r.RemovedResourceNames) == 0 && len(r.ResourceErrors) == 0 && len(r.ProtoReflect().GetUnknown()) == 0
}

// plainResource is plainResponse for a resource.
func plainResource(r *discovery.Resource) bool {
	return r.GetResource() != nil && isText(r.Version) && isText(r.Name) && isText(r.Resource.TypeUrl) &&
		len(r.Resource.Value) > 0 && len(r.Aliases) == 0 && r.ResourceName == nil && r.Ttl == nil && r.CacheControl == nil && r.Metadata == nil &&
		len(r.ProtoReflect().GetUnknown()) == 0 && len(r.Resource.ProtoReflect().GetUnknown()) == 0
}

// isText reports whether a field of a text is marshalled: protobuf leaves out an empty one, and refuses what is not UTF-8.
func isText(s string) bool { return s != "" && utf8.ValidString(s) }
