package xds

import (
	"bytes"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"
)

// chainParts are the fields of a marshalled filter chain in their order. Proxies share all but the handshakes. They are
// immutable.
type chainParts struct{ before, handshakes, after []byte }

// newChainParts marshals a chain without handshakes.
func newChainParts(chain *listenerv3.FilterChain) (*chainParts, error) {
	before, err := marshalled(&listenerv3.FilterChain{FilterChainMatch: chain.GetFilterChainMatch(), Filters: chain.GetFilters(),
		Metadata: chain.GetMetadata()})
	if err != nil {
		return nil, err
	}
	after, err := marshalled(&listenerv3.FilterChain{Name: chain.GetName(),
		TransportSocketConnectTimeout: chain.GetTransportSocketConnectTimeout()})
	return &chainParts{before: before, after: after}, err
}

// chainsField is the number of Listener.filter_chains.
const chainsField = 3

// field returns the chain as a field of a marshalled listener, in parts.
func (c *chainParts) field() [][]byte {
	begin := protowire.AppendTag(nil, chainsField, protowire.BytesType)
	begin = protowire.AppendVarint(begin, uint64(len(c.before)+len(c.handshakes)+len(c.after)))
	return [][]byte{begin, c.before, c.handshakes, c.after}
}

// listenerOf returns a listener from the parts of its message.
func listenerOf(name string, parts [][]byte) *resource {
	return resourceOf(name, &anypb.Any{TypeUrl: typeURLs[kindListener], Value: bytes.Join(parts, nil)})
}
