package xds

import (
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/proto"
)

// forwards ends the names of forwarders. It includes the protocol, as names of other filters by ECDS do.
const forwards = "_forward_tcp"

// forwarder is the TCP proxy that ends a chain. It comes by ECDS, so that no policy on it replaces a listener: open
// connections keep the forwarder that they began with, and new ones get the new one. A connection manager cannot come
// this way (docs/decisions/0075).
type forwarder struct {
	// inChain is the filter as the listener has it, and filter as ECDS serves it.
	inChain *listenerv3.Filter
	filter  *resource
}

// newForwarder makes the forwarder of a chain. bare is the TCP proxy without the effect of policies: it is in use if the
// proxy refuses the first one that it gets, or gets none within Envoy's 15 seconds.
func newForwarder(chain string, config, bare *tcpv3.TcpProxy) (*forwarder, error) {
	until, err := pack(bare)
	if err != nil {
		return nil, err
	}
	filter, err := newExtension(chain+forwards, config)
	return &forwarder{filter: filter, inChain: &listenerv3.Filter{Name: chain + forwards,
		ConfigType: &listenerv3.Filter_ConfigDiscovery{ConfigDiscovery: &corev3.ExtensionConfigSource{
			ConfigSource: overADS(), DefaultConfig: until, TypeUrls: []string{until.TypeUrl}}}}}, err
}

// isForwarder reports whether a filter is a forwarder.
func isForwarder(filter string) bool { return strings.HasSuffix(filter, forwards) }

// withoutNewForwarders leaves out the forwarders that the proxy does not have yet: they name clusters that it may not
// have, or that still wait for endpoints and secrets.
func withoutNewForwarders(filters set, known map[string]string) (out set, left bool) {
	for _, r := range filters {
		if isForwarder(r.name) && known[r.name] != r.version {
			left = true
			continue
		}
		out = append(out, r)
	}
	return out, left
}

// openedKey is a listener with the forwarders of its chains: there are two if it takes plaintext, too.
type openedKey struct {
	of         *resource
	forwarders [2]*resource
}

// openListener returns the message of a listener as patches see it: forwarders are filters like all others. A listener
// that no patch changes goes on without them.
func (s *state) openListener(t *target, r *resource) (*listenerv3.Listener, error) {
	listener, err := openAs[*listenerv3.Listener](t, r)
	if err != nil {
		return nil, err
	}
	key, ends := openedKey{of: r}, forwardersIn(listener)
	if len(ends) == 0 {
		return listener, nil
	}
	for i, f := range ends[:min(len(ends), len(key.forwarders))] {
		if key.forwarders[i] = s.sets[kindExtension].get(f.GetName()); key.forwarders[i] == nil {
			return nil, fmt.Errorf("%w: there is no filter %s yet", ErrConfig, f.GetName())
		}
	}
	made, err := t.shared.opened.get(key, func() (*opened, error) {
		whole := proto.CloneOf(listener)
		for i, f := range forwardersIn(whole)[:min(len(ends), len(key.forwarders))] {
			config := &corev3.TypedExtensionConfig{}
			if err := key.forwarders[i].delta.GetResource().UnmarshalTo(config); err != nil {
				return nil, err
			}
			f.Name, f.ConfigType = "envoy.filters.network.tcp_proxy", &listenerv3.Filter_TypedConfig{TypedConfig: config.GetTypedConfig()}
		}
		return &opened{whole}, nil
	})
	if err != nil {
		return nil, err
	}
	return made.Message.(*listenerv3.Listener), nil
}

// forwardersIn returns the last filter of each chain that ends with a forwarder.
func forwardersIn(l *listenerv3.Listener) (out []*listenerv3.Filter) {
	for _, chain := range l.GetFilterChains() {
		filters := chain.GetFilters()
		if n := len(filters); n > 0 && filters[n-1].GetConfigDiscovery() != nil && isForwarder(filters[n-1].GetName()) {
			out = append(out, filters[n-1])
		}
	}
	return out
}

// sameForwarders reports whether two states have the same forwarders.
func (s *state) sameForwarders(old *state) bool {
	of := func(all set) (out set) {
		for _, r := range all {
			if isForwarder(r.name) {
				out = append(out, r)
			}
		}
		return out
	}
	return of(s.sets[kindExtension]).equal(of(old.sets[kindExtension]))
}
