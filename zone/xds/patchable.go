package xds

import (
	"fmt"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/causeway-mesh/causeway/resources/proxypatch"
)

// patchable returns the resources of a state. Their messages are decoded when a patch needs them: a patch for one cluster
// costs the decoding of that one.
func (s *state) patchable(t *target) (*proxypatch.Config, error) {
	made := make([]proxypatch.Resource, 0, len(s.sets[kindListener])+len(s.sets[kindCluster])+len(s.sets[kindRoute]))
	add := func(to map[string]*proxypatch.Resource, r proxypatch.Resource) {
		made = append(made, r)
		to[r.Name] = &made[len(made)-1]
	}
	out := &proxypatch.Config{Clusters: make(map[string]*proxypatch.Resource, len(s.sets[kindCluster])),
		Listeners: make(map[string]*proxypatch.Resource, len(s.sets[kindListener])),
		Routes:    make(map[string]*proxypatch.Resource, len(s.sets[kindRoute])), Open: func(from any) (proto.Message, error) { return s.open(t, from.(*resource)) }}
	tags := map[string]map[string]string{}
	for i := range t.inbounds {
		tags[t.inbounds[i].name()] = t.inbounds[i].port.Tags
	}
	outbound := map[string]bool{}
	for _, r := range s.sets[kindListener] {
		if r.name == adminListener {
			continue // it belongs to the zone: setPatched adds it
		}
		origin := s.originOf(kindListener, r.name)
		if t.gateway != nil && origin == proxypatch.OriginOutbound {
			origin = proxypatch.OriginGateway // clients from elsewhere reach it
		}
		if origin == proxypatch.OriginOutbound {
			listener, err := openAs[*listenerv3.Listener](t, r) // proxies share most of these
			if err != nil {
				return nil, err
			}
			if outbound[r.name] = listener.GetTrafficDirection() == corev3.TrafficDirection_OUTBOUND; !outbound[r.name] {
				origin = proxypatch.OriginOther
			}
		}
		add(out.Listeners, proxypatch.Resource{Name: r.name, Origin: origin, Tags: tags[r.name], From: r})
	}
	for _, r := range s.sets[kindCluster] {
		add(out.Clusters, proxypatch.Resource{Name: r.name, Origin: s.originOf(kindCluster, r.name), From: r})
	}
	for _, r := range s.sets[kindRoute] {
		origin := s.originOf(kindRoute, r.name)
		if t.gateway != nil && origin == proxypatch.OriginOutbound {
			origin = proxypatch.OriginGateway
		} else if origin == proxypatch.OriginOutbound && !outbound[r.name] {
			origin = proxypatch.OriginOther
		}
		add(out.Routes, proxypatch.Resource{Name: r.name, Origin: origin, Tags: tags[r.name], From: r})
	}
	return out, nil
}

// open decodes a resource, as patches see it.
func (s *state) open(t *target, r *resource) (proto.Message, error) {
	switch r.delta.GetResource().GetTypeUrl() {
	case typeURLs[kindListener]:
		return s.openListener(t, r)
	case typeURLs[kindRoute]:
		return openAs[*routev3.RouteConfiguration](t, r)
	}
	return openAs[*clusterv3.Cluster](t, r)
}

// opened is the message of a resource. Proxies that share the resource share it, and it must not be changed: patches
// make copies.
type opened struct{ proto.Message }

// openAs returns the message of a resource.
func openAs[M proto.Message](t *target, r *resource) (m M, err error) {
	made, err := t.shared.opened.get(openedKey{of: r}, func() (*opened, error) {
		m, err := r.delta.GetResource().UnmarshalNew()
		return &opened{m}, err
	})
	if err != nil {
		return m, err
	}
	m, ok := made.Message.(M)
	if !ok {
		return m, fmt.Errorf("%w: %s is a %T", ErrConfig, r.name, made.Message)
	}
	return m, nil
}

// originOf returns the origin of a resource, as matches of patches name it.
func (s *state) originOf(k kind, name string) string {
	switch {
	case s.receiving[k].get(name) == nil:
		return proxypatch.OriginOutbound
	case name == metricsListener:
		return proxypatch.OriginMetrics
	case strings.HasPrefix(name, "self_inbound_"):
		return proxypatch.OriginInbound
	}
	return proxypatch.OriginOther
}
