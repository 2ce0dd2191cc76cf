package xds

import (
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// door is what the listener of an egress knows of a service outside the mesh: the name of its cluster, and the server
// name that clients ask for. Nothing else of the service is in the listener.
type door struct{ name, sni string }

// resolveEgress adds all services outside the mesh, if the proxy is an egress, and returns the doors to them, one for
// each server name.
func (s *sender) resolveEgress() []door {
	if !s.egress {
		return nil
	}
	s.out.egress = true
	var out []door
	taken := map[string]string{}
	for _, d := range s.dests.All() {
		if d.Resource.Type != resources.TypeMeshExternalService {
			continue
		}
		for _, b := range s.backendsOf(d.Resource) {
			b = s.needs(b)
			at := door{b.name, b.sni()}
			if other := taken[at.sni]; other != "" {
				s.problem(b.name, "the egress does not reach it: it has the server name of "+other)
				continue
			}
			taken[at.sni] = b.name
			out = append(out, at)
		}
	}
	return out
}

// ledKey is everything that the listener of an egress depends on beside its doors and its handshakes.
type ledKey struct {
	section, filters string
	listen           endpoint
	// mark is the access mark of its clients.
	mark string
}

// led is the listener of an egress, with what it was built from.
type led struct {
	ledKey
	doors []door
	// handshakes are those of all chains, with the name of the proxy's identity.
	handshakes *stencil
	identity   string
	chains     []chain
	*resource
}

// lead adds the listeners of an egress. Envoy refuses a listener without a chain.
func (s *sender) lead(p *plan, out *sending) error {
	if len(p.doors) == 0 {
		return nil
	}
	for i := range s.target.egresses {
		in := &s.target.egresses[i]
		made := led{doors: p.doors, identity: s.target.secrets.identity, ledKey: ledKey{section: in.section, listen: in.listen,
			filters: strings.Join(in.filterNames(), " "), mark: s.accesses[in.accessKey()].mark}}
		var err error
		if made.handshakes, err = s.target.answers(in.http()); err == nil {
			err = s.egressListener(in, &made)
		}
		if err != nil {
			return fmt.Errorf("egress %q: %w", in.section, err)
		}
		out.led = append(out.led, made)
		out.sets[kindListener] = append(out.sets[kindListener], made.resource)
	}
	return nil
}

// egressListener builds the listener of an egress, unless the proxy has it: a chain for each service outside the mesh,
// selected by the client's server name. Each uses mutual TLS of the mesh, and the permissions of the section judge the
// client.
func (s *sender) egressListener(in *inbound, made *led) error {
	if last := s.last; last != nil {
		for i := range last.led {
			has := &last.led[i]
			if has.ledKey == made.ledKey && has.handshakes == made.handshakes && has.identity == made.identity &&
				slices.Equal(has.doors, made.doors) {
				made.chains, made.resource = has.chains, has.resource
				return nil
			}
		}
	}
	same, err := theUnvarying()
	if err != nil {
		return err
	}
	head, err := marshalled(&listenerv3.Listener{Name: in.name(), Address: in.listen.proto()})
	if err != nil {
		return err
	}
	for _, d := range made.doors {
		key := doorKey{d, made.section, made.filters, made.mark}
		parts, err := s.target.shared.doors.get(key, func() (*chainParts, error) { return s.doorParts(in, d) })
		if err != nil {
			return err
		}
		made.chains = append(made.chains, chain{chainParts: parts, handshakes: made.handshakes, identity: made.identity})
	}
	tail, err := marshalled(&listenerv3.Listener{
		StatPrefix:       in.name(),
		TrafficDirection: corev3.TrafficDirection_INBOUND,
		ListenerFilters: []*listenerv3.ListenerFilter{{
			Name:       "envoy.filters.listener.tls_inspector",
			ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: same.inspector},
		}},
	})
	if err != nil {
		return err
	}
	around := &frame{string(head), string(tail)}
	made.resource = around.listener(in.name(), made.chains)
	return nil
}

// doorKey is everything that the chain of a door depends on, apart from handshakes. Egresses share it.
type doorKey struct {
	door
	section, filters, mark string
}

func (s *sender) doorParts(in *inbound, d door) (*chainParts, error) {
	filters, err := egressFilters(in, d.name)
	if err != nil {
		return nil, err
	}
	return newChainParts(&listenerv3.FilterChain{
		Name: d.name, Filters: filters, TransportSocketConnectTimeout: handshakeTime,
		FilterChainMatch: &listenerv3.FilterChainMatch{ServerNames: []string{d.sni}},
		Metadata:         s.accesses[in.accessKey()].metadata(),
	}, nil)
}

// egressFilters judge a client on its first bytes. Only then does the proxy connect to the service.
func egressFilters(in *inbound, cluster string) ([]*listenerv3.Filter, error) {
	deny, err := pack(rbac.DenyAllNetwork(in.statPrefix()))
	if err != nil {
		return nil, err
	}
	var filters []*listenerv3.Filter
	for _, name := range in.filterNames() {
		filters = append(filters, &listenerv3.Filter{Name: name,
			ConfigType: &listenerv3.Filter_ConfigDiscovery{ConfigDiscovery: discovered(deny)}})
	}
	proxy, err := pack(&tcpv3.TcpProxy{StatPrefix: cluster,
		ClusterSpecifier:    &tcpv3.TcpProxy_Cluster{Cluster: cluster},
		UpstreamConnectMode: tcpv3.UpstreamConnectMode_ON_DOWNSTREAM_DATA,
		MaxEarlyDataBytes:   wrapperspb.UInt32(maxEarlyData)})
	if err != nil {
		return nil, err
	}
	return append(filters, &listenerv3.Filter{Name: "envoy.filters.network.tcp_proxy",
		ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: proxy}}), nil
}
