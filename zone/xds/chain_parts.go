package xds

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"
)

// chainParts are the fields of a marshalled filter chain in their order, without handshakes. Proxies share them. They are
// immutable.
type chainParts struct {
	before string
	// manager is the connection manager of a chain for HTTP, its last filter, without spans, which have the name of a
	// workload; empty for others. Every connection manager has fields.
	manager string
	after   string
}

// newChainParts marshals a chain. manager is its last filter, without spans; nil for none.
func newChainParts(all *listenerv3.FilterChain, manager *hcmv3.HttpConnectionManager) (*chainParts, error) {
	before, err := marshalled(&listenerv3.FilterChain{FilterChainMatch: all.GetFilterChainMatch(), Filters: all.GetFilters(),
		Metadata: all.GetMetadata()})
	if err != nil {
		return nil, err
	}
	after, err := marshalled(&listenerv3.FilterChain{Name: all.GetName(),
		TransportSocketConnectTimeout: all.GetTransportSocketConnectTimeout()})
	if err != nil || manager == nil {
		return &chainParts{before: string(before), after: string(after)}, err
	}
	whole, err := marshalled(manager)
	if err != nil {
		return nil, err
	}
	return &chainParts{string(before), string(whole), string(after)}, nil
}

// Fields of Listener, FilterChain, Filter and HttpConnectionManager.
const (
	chainsOfListener             protowire.Number = 3
	filtersOfChain               protowire.Number = 3
	nameOfFilter, configOfFilter protowire.Number = 1, 4
)

// managerFilter is the name of a connection manager in a chain, and managerURL its type.
const managerFilter = "envoy.filters.network.http_connection_manager"

var managerURL = typeURLOf(&hcmv3.HttpConnectionManager{})

// chain is a filter chain of a proxy: what it shares with others, with what is its own.
type chain struct {
	*chainParts
	// spans is the field of a connection manager that sends spans; empty for none. It comes last: the order of fields has no
	// meaning.
	spans string
	// handshakes has the name of the proxy's identity; nil for plaintext.
	handshakes *stencil
	identity   string
}

// sizes are those of messages in each other: of the content of a chain, of its last filter, of the Any in that, and of the
// connection manager in that.
type sizes struct{ chain, filter, config, manager int }

func (c *chain) sizes() (s sizes) {
	s.chain = len(c.before) + c.handshakes.size(c.identity) + len(c.after)
	if c.manager != "" {
		s.manager = len(c.manager) + len(c.spans)
		s.config = sizeOfBytes(anyTypeURL, len(managerURL)) + sizeOfBytes(anyValue, s.manager)
		s.filter = sizeOfBytes(nameOfFilter, len(managerFilter)) + sizeOfBytes(configOfFilter, s.config)
		s.chain += sizeOfBytes(filtersOfChain, s.filter)
	}
	return s
}

// appendTo appends the chain as a field of a marshalled listener.
func (c *chain) appendTo(to []byte) []byte {
	s := c.sizes()
	to = append(appendHead(to, chainsOfListener, s.chain), c.before...)
	if c.manager != "" {
		to = appendText(appendHead(to, filtersOfChain, s.filter), nameOfFilter, managerFilter)
		to = appendText(appendHead(to, configOfFilter, s.config), anyTypeURL, managerURL)
		to = append(append(appendHead(to, anyValue, s.manager), c.manager...), c.spans...)
	}
	return append(c.handshakes.appendTo(to, c.identity), c.after...)
}

// frame is what a marshalled listener has around its chains: the fields before and after them.
type frame struct{ before, after string }

// listener returns the listener with some chains.
func (f *frame) listener(name string, chains []chain) *resource {
	size := len(f.before) + len(f.after)
	for i := range chains {
		size += sizeOfBytes(chainsOfListener, chains[i].sizes().chain)
	}
	message := append(make([]byte, 0, size), f.before...)
	for i := range chains {
		message = chains[i].appendTo(message)
	}
	return resourceOf(name, &anypb.Any{TypeUrl: typeURLs[kindListener], Value: append(message, f.after...)})
}
