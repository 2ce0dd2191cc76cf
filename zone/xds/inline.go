package xds

import (
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// envoyAgent is the user agent of an Envoy node, which accepts filters by ECDS on any kind of stream.
const envoyAgent = "envoy"

// inliner writes the filters that a listener would get by ECDS into the listener itself. It serves clients that only
// speak state of the world and do not ask for filters. For them a policy change is a new listener. inliner caches its
// last result, since most requests are acknowledgements.
type inliner struct {
	made map[string]inlined // by listener
}

type inlined struct {
	// of holds the versions of the listener and filters that it was built from.
	of       string
	listener *resource
}

// inline returns listeners with their filters. It fails if a filter that a listener names is missing.
func (i *inliner) inline(listeners, filters set) (set, error) {
	made := make(map[string]inlined, len(listeners))
	var out []*resource
	for _, l := range listeners {
		of := l.version + " " + versionOf(filters)
		entry, ok := i.made[l.name]
		if !ok || entry.of != of {
			r, err := inlineFilters(l, filters)
			if err != nil {
				return nil, fmt.Errorf("listener %s: %w", l.name, err)
			}
			entry = inlined{of: of, listener: r}
		}
		made[l.name] = entry
		out = append(out, entry.listener)
	}
	i.made = made
	return newSet(out...), nil
}

func inlineFilters(l *resource, filters set) (*resource, error) {
	listener := &listenerv3.Listener{}
	if err := l.delta.GetResource().UnmarshalTo(listener); err != nil {
		return nil, err
	}
	for _, chain := range listener.GetFilterChains() {
		for _, f := range chain.GetFilters() {
			if err := inlineNetwork(f, filters); err != nil {
				return nil, err
			}
		}
	}
	return newResource(kindListener, l.name, listener)
}

// inlineNetwork expands a network filter, or the HTTP filters in it if it is a connection manager.
func inlineNetwork(f *listenerv3.Filter, filters set) error {
	if f.GetConfigDiscovery() != nil {
		config, err := filterConfig(filters, f.GetName())
		f.ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: config}
		return err
	}
	manager := &hcmv3.HttpConnectionManager{}
	if !f.GetTypedConfig().MessageIs(manager) {
		return nil
	}
	if err := f.GetTypedConfig().UnmarshalTo(manager); err != nil {
		return err
	}
	for _, hf := range manager.GetHttpFilters() {
		if hf.GetConfigDiscovery() == nil {
			continue
		}
		config, err := filterConfig(filters, hf.GetName())
		if err != nil {
			return err
		}
		hf.ConfigType = &hcmv3.HttpFilter_TypedConfig{TypedConfig: config}
	}
	packed, err := pack(manager)
	f.ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: packed}
	return err
}

// filterConfig returns the configuration that ECDS would serve under a name. A listener whose filter has none must not
// be served, because it would admit every client.
func filterConfig(filters set, name string) (*anypb.Any, error) {
	r := filters.get(name)
	if r == nil {
		return nil, fmt.Errorf("%w: filter %s not found yet", ErrConfig, name)
	}
	config := &corev3.TypedExtensionConfig{}
	if err := r.delta.GetResource().UnmarshalTo(config); err != nil {
		return nil, err
	}
	return proto.CloneOf(config.GetTypedConfig()), nil
}

// needsInline reports whether a node on a stream of the state of the world needs its filters inline.
func needsInline(node *corev3.Node) bool {
	return !strings.EqualFold(node.GetUserAgentName(), envoyAgent) && !isGRPC(node)
}

// inlineLocked returns the listeners to send on the stream; ok is false while they cannot be made.
func (s *session) inlineLocked(listeners set) (out set, ok bool) {
	filters, _ := s.proxy.find(kindExtension)
	out, err := s.inliner.inline(listeners, filters)
	if err != nil {
		s.log.Error("cannot add filters to listeners; the proxy keeps its configuration", "error", err)
		return nil, false
	}
	return out, true
}
