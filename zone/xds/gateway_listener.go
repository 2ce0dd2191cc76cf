package xds

import (
	"cmp"
	"time"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// Limits for clients outside the mesh, unless a policy sets others.
const (
	gatewayHeadersTimeout = 10 * time.Second
	gatewayStreamIdle     = 5 * time.Minute
	gatewayIdleTimeout    = time.Hour
	gatewayStreams        = 100
	gatewayStreamWindow   = 64 << 10
	gatewayWindow         = 1 << 20
)

// makeGateway adds the listeners, routes and certificates of the gateway that the proxy serves.
func (s *sender) makeGateway(p *plan) error {
	g := s.target.gateway
	if g == nil {
		return nil
	}
	defer s.keepOfGateway(len(s.out.problems))
	for _, port := range g.ports {
		part, err := s.gatewayPort(port)
		if err != nil {
			return err
		}
		if part != nil {
			p.gateway = append(p.gateway, part)
		}
	}
	s.unattached()
	s.unlogged()
	s.out.certificates = newSet(s.out.certificates...)
	return nil
}

// gatewayPort builds Envoy's listener for a port; nil if no listener on it can be served.
func (s *sender) gatewayPort(port *gatewayPort) (*gatewayPart, error) {
	if first := port.listeners[0]; first.http() && !first.tls() {
		return s.plainPort(port)
	}
	var chains []*listenerv3.FilterChain
	for _, l := range port.listeners {
		chain, err := s.gatewayChain(port, l)
		if err != nil {
			return nil, err
		}
		if chain != nil {
			chains = append(chains, chain)
		}
	}
	if len(chains) == 0 {
		return nil, nil
	}
	var filters []*listenerv3.ListenerFilter
	if port.listeners[0].tls() {
		same, err := theUnvarying()
		if err != nil {
			return nil, err
		}
		filters = []*listenerv3.ListenerFilter{{Name: "envoy.filters.listener.tls_inspector",
			ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: same.inspector}}}
	}
	return s.gatewayPart(port, chains, filters)
}

// gatewayPortKey is everything that the listener of a port depends on that serves HTTP without TLS and logs nothing: neither
// hostnames nor routes.
type gatewayPortKey struct {
	name   string
	port   uint32
	limits managerLimits
	by     *provider
}

// plainPort builds the listener of a port for HTTP without TLS. All hosts are in the routes of its one filter chain.
func (s *sender) plainPort(port *gatewayPort) (*gatewayPart, error) {
	if err := s.addTable(port.name, s.hostsOf(port, port.listeners)); err != nil {
		return nil, err
	}
	limits, logs := s.managerLimits(), s.gatewayLogs(true, matching.MeshKey(s.target.match.Key.Mesh))
	build := func() (*gatewayPart, error) {
		manager, err := s.gatewayManager(port.name, limits, logs)
		if err != nil {
			return nil, err
		}
		filter, err := packedFilter(managerFilter, manager)
		if err != nil {
			return nil, err
		}
		return s.gatewayPart(port, []*listenerv3.FilterChain{{Name: port.name, Filters: []*listenerv3.Filter{filter}}}, nil)
	}
	if len(logs) > 0 {
		return build()
	}
	return s.target.shared.gatewayPorts.get(gatewayPortKey{port.name, port.port, limits, s.target.spans()}, build)
}

func packedFilter(name string, config message) (*listenerv3.Filter, error) {
	packed, err := pack(config)
	return &listenerv3.Filter{Name: name, ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed}}, err
}

// gatewayPart returns the listener of a port with some filter chains.
func (s *sender) gatewayPart(port *gatewayPort, chains []*listenerv3.FilterChain, filters []*listenerv3.ListenerFilter) (*gatewayPart, error) {
	packed, err := pack(&listenerv3.Listener{
		Name: port.name, StatPrefix: port.name, TrafficDirection: corev3.TrafficDirection_OUTBOUND,
		ListenerFilters: filters, FilterChains: chains,
	})
	if err != nil {
		return nil, err
	}
	key := gatewayPartKey{name: port.name, port: port.port, config: string(packed.Value)}
	return s.target.shared.gatewayParts.put(key, &gatewayPart{key}), nil
}

// gatewayChain builds the filter chain of a listener; nil if it cannot be served.
func (s *sender) gatewayChain(port *gatewayPort, l *gatewayListener) (*listenerv3.FilterChain, error) {
	chain := &listenerv3.FilterChain{Name: port.chain(l)}
	if l.tls() {
		chain.FilterChainMatch = &listenerv3.FilterChainMatch{TransportProtocol: "tls"}
		if l.hostname != resources.AnyHost {
			chain.FilterChainMatch.ServerNames = []string{l.hostname}
		}
	}
	certificates := len(s.out.certificates)
	if l.terminates() {
		socket, err := s.gatewayTLS(l, chain.Name)
		if socket == nil || err != nil {
			return nil, err
		}
		chain.TransportSocket, chain.TransportSocketConnectTimeout = socket, handshakeTime
	}
	filter, name, err := s.gatewayFilter(port, l)
	if filter == nil || err != nil {
		s.out.certificates = s.out.certificates[:certificates] // no chain asks for them, and routes wait for all secrets
		return nil, err
	}
	packed, err := packedFilter(name, filter)
	chain.Filters = []*listenerv3.Filter{packed}
	return chain, err
}

// gatewayFilter builds the filter that forwards requests or connections; nil if no route accepts the connections.
func (s *sender) gatewayFilter(port *gatewayPort, l *gatewayListener) (filter message, name string, err error) {
	if !l.http() {
		if r := s.connectionsOf(l); r != nil {
			return s.gatewayTCP(port.chain(l), r), "envoy.filters.network.tcp_proxy", nil
		}
		s.problem(s.target.gateway.kri, l.field+": not served, because no MeshTCPRoute routes its connections")
		return nil, "", nil
	}
	if err := s.addTable(port.chain(l), s.hostsOf(port, []*gatewayListener{l})); err != nil {
		return nil, "", err
	}
	manager, err := s.gatewayManager(port.chain(l), s.managerLimits(), s.gatewayLogs(true, matching.MeshKey(s.target.match.Key.Mesh)))
	return manager, managerFilter, err
}

// addTable adds the routes of a listener.
func (s *sender) addTable(name string, hosts []*gatewayHost) error {
	table, err := s.gatewayTable(name, hosts)
	if err == nil {
		s.out.sets[kindRoute] = append(s.out.sets[kindRoute], table)
	}
	return err
}

// managerLimits are what MeshTimeouts say of a gateway's connection managers. A manager has no others.
type managerLimits struct {
	// headers limits the time to receive a request's headers.
	headers time.Duration
	// connection limits the time of a connection.
	connection durationOrNone
}

func (s *sender) managerLimits() managerLimits {
	limits := s.timeoutsOf(s.timeouts.For(matching.MeshKey(s.target.match.Key.Mesh)))
	out := managerLimits{headers: gatewayHeadersTimeout}
	if limits.requestHeaders != nil {
		out.headers = *limits.requestHeaders
	}
	if limits.maxConnection != nil {
		out.connection = durationOrNone{*limits.maxConnection, true}
	}
	return out
}

// gatewayManager reads the requests of clients outside the mesh. It normalises paths as inbounds do, ignores all
// headers about the client's identity and address, and adds the client's own address.
func (s *sender) gatewayManager(name string, limits managerLimits, logs []*accesslogv3.AccessLog) (*hcmv3.HttpConnectionManager, error) {
	same, err := theUnvarying()
	if err != nil {
		return nil, err
	}
	out := &hcmv3.HttpConnectionManager{
		AccessLog:                    logs,
		StatPrefix:                   name,
		CodecType:                    hcmv3.HttpConnectionManager_AUTO,
		NormalizePath:                wrapperspb.Bool(true),
		MergeSlashes:                 true,
		PathWithEscapedSlashesAction: hcmv3.HttpConnectionManager_REJECT_REQUEST,
		ForwardClientCertDetails:     hcmv3.HttpConnectionManager_SANITIZE,
		UseRemoteAddress:             wrapperspb.Bool(true),
		InternalAddressConfig:        &hcmv3.HttpConnectionManager_InternalAddressConfig{}, // none
		ServerHeaderTransformation:   hcmv3.HttpConnectionManager_PASS_THROUGH,
		StripTrailingHostDot:         true,
		StreamIdleTimeout:            durationpb.New(gatewayStreamIdle),
		RequestHeadersTimeout:        durationpb.New(limits.headers),
		CommonHttpProtocolOptions:    &corev3.HttpProtocolOptions{IdleTimeout: durationpb.New(gatewayIdleTimeout)},
		Http2ProtocolOptions: &corev3.Http2ProtocolOptions{
			MaxConcurrentStreams:        wrapperspb.UInt32(gatewayStreams),
			InitialStreamWindowSize:     wrapperspb.UInt32(gatewayStreamWindow),
			InitialConnectionWindowSize: wrapperspb.UInt32(gatewayWindow),
		},
		HttpFilters: []*hcmv3.HttpFilter{
			{Name: "envoy.filters.http.router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: same.router}},
		},
		UpgradeConfigs: []*hcmv3.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: overADS(), RouteConfigName: name}},
	}
	if limits.connection.is {
		out.CommonHttpProtocolOptions.MaxConnectionDuration = durationpb.New(limits.connection.Duration)
	}
	out.EarlyHeaderMutationExtensions = []*corev3.TypedExtensionConfig{same.outsiders}
	s.target.observed.trace.onManager(out)
	return out, nil
}

// gatewayTCP sends connections to the services of a route.
func (s *sender) gatewayTCP(name string, r *gatewayRoute) *tcpv3.TcpProxy {
	key, main := matching.MeshKey(s.target.match.Key.Mesh), r.main()
	if main != nil {
		key = main.key()
	}
	idle, attempts := s.connectionsBy(r, key)
	out := &tcpv3.TcpProxy{
		AccessLog: s.gatewayLogs(false, key), StatPrefix: name, IdleTimeout: durationpb.New(idle),
		MaxConnectAttempts: attempts, ClusterSpecifier: &tcpv3.TcpProxy_Cluster{Cluster: lost},
	}
	sendTo(out, r.shares)
	for _, w := range r.shares {
		if w.weight == 0 || w.backend == nil {
			continue
		}
		if i, a := s.connectionsBy(r, w.backend.key()); i != idle || a.GetValue() != attempts.GetValue() {
			s.problem(r.rule.Origin.KRI().String(), "connections of one rule have the idle timeout and retries of one service: those of "+
				main.name+" and not of "+w.name)
			break
		}
	}
	return out
}

// connectionsBy returns the idle timeout of a rule's connections to a service, and the number of connection attempts.
func (s *sender) connectionsBy(r *gatewayRoute, key matching.ResourceKey) (time.Duration, *wrapperspb.UInt32Value) {
	return s.timeoutsOf(s.timeouts.ForRoute(r.rule.Route, key)).idle, s.connectAttempts(s.retries.ForRoute(r.rule.Route, key))
}

// gatewayLogs builds the logs of a listener. An HTTP listener logs all of its requests or none, so only items for kind
// Mesh count there.
func (s *sender) gatewayLogs(http bool, key matching.ResourceKey) []*accesslogv3.AccessLog {
	rule := s.logs.For(key)
	if rule == nil || len(rule.Conf) == 0 {
		return nil
	}
	return s.logged(s.from.logger(http, false, s.target.logFiles, nearby{s.own, s.target.measured.adminPort}, s.from.service, "%UPSTREAM_CLUSTER%"), rule)
}

// unlogged reports logs for only some services or routes.
func (s *sender) unlogged() {
	all := s.logs.For(matching.MeshKey(s.target.match.Key.Mesh))
	for _, r := range s.gateway.http {
		for _, w := range r.shares {
			if w.backend == nil {
				continue
			}
			if rule := s.logs.ForRoute(r.rule.Route, w.backend.key()); !sameConf(rule, all) {
				s.problem(originOf(rule), "a gateway's HTTP listener logs only by items for kind Mesh, not for "+
					cmp.Or(w.backend.name, rule.Key.String()))
			}
		}
	}
}
