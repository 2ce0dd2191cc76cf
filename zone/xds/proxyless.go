package xds

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httprbac "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// Values that a gRPC server's bootstrap shares with the zone.
const (
	// ServerListenerTemplate is its server_listener_resource_name_template: gRPC fills in the address that it listens
	// on.
	ServerListenerTemplate = "self_inbound_grpc/%s"
	// CertificateProvider names the certificate provider for its identity and its trust bundles.
	CertificateProvider = "causeway"
)

// buildProxyless builds the state of a gRPC server that reads xDS itself. The permissions are in the routes, because a
// server drains all its connections when its listener changes, and none when its routes do.
func buildProxyless(t *target, policies []*matching.Policy, old *state) (*state, error) {
	s := &state{proxyless: true, unsupported: slices.Clone(t.observed.unsupported)}
	ports := map[uint32]int{}
	for i := range t.inbounds {
		ports[t.inbounds[i].listen.port]++
	}
	for i := range t.inbounds {
		in := &t.inbounds[i]
		if !in.http() {
			s.unsupported = append(s.unsupported, fmt.Sprintf("inbound %q: a gRPC server supports only http, http2 and grpc", in.section))
			continue
		}
		rules := matching.Inbound(t.match, in.port, policies)
		route, err := in.serverRoute(rules)
		if err != nil {
			return nil, fmt.Errorf("inbound %q: %w", in.section, err)
		}
		s.sets[kindRoute] = append(s.sets[kindRoute], route)
		for i := range receivedTypes {
			input := matching.InboundInput{Type: receivedTypes[i].Type, Proxy: t.match, Inbound: in.port, Policies: policies}
			for _, rule := range matching.InboundConfs(input).Items {
				for _, origin := range rule.Origins {
					s.unsupported = append(s.unsupported, fmt.Sprintf("inbound %q: %s: a gRPC server takes no %s", in.section,
						origin.KRI(), input.Type))
				}
			}
		}
		for _, w := range rbac.ClassicWarnings(rules) {
			s.unsupported = append(s.unsupported, fmt.Sprintf("inbound %q: %s %s: %s", in.section, w.Policy, w.Field, w.Text))
		}
		for _, address := range in.listensOn(ports) {
			listener, err := in.serverListener(address)
			if err != nil {
				return nil, fmt.Errorf("inbound %q: %w", in.section, err)
			}
			s.sets[kindListener] = append(s.sets[kindListener], listener)
		}
	}
	for k := range s.sets {
		s.sets[k] = newSet(s.sets[k]...)
		if old != nil {
			s.sets[k] = s.sets[k].keepOf(old.sets[k])
		}
	}
	s.receiving = s.sets
	return s, nil
}

// listensOn returns the addresses under which a server may ask for the inbound: the inbound's own, and all of the
// machine's if no other inbound has the port. gRPC expects its own spelling of the address in the response.
func (in *inbound) listensOn(ports map[uint32]int) []string {
	out := []string{in.listen.address}
	for _, all := range []string{"0.0.0.0", "::"} {
		if ports[in.listen.port] == 1 && in.listen.address != all {
			out = append(out, all)
		}
	}
	return out
}

// Names of the two filters and of the route configuration of an inbound.
func (in *inbound) denyFilter() string  { return in.name() + "_rbac_deny" }
func (in *inbound) allowFilter() string { return in.name() + "_rbac_allow" }
func (in *inbound) routeName() string   { return "self_inbound_grpc_" + in.section }

// serverListener builds a listener with mutual TLS, certificates from files, and two filters that deny until the routes
// override them.
func (in *inbound) serverListener(address string) (*resource, error) {
	deny, err := pack(rbac.DenyAllClassic())
	if err != nil {
		return nil, err
	}
	router, err := pack(&routerv3.Router{})
	if err != nil {
		return nil, err
	}
	manager, err := pack(&hcmv3.HttpConnectionManager{
		StatPrefix: in.name(),
		HttpFilters: []*hcmv3.HttpFilter{
			{Name: in.denyFilter(), ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: deny}},
			{Name: in.allowFilter(), ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: deny}},
			{Name: "envoy.filters.http.router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: router}},
		},
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: overADS(),
			RouteConfigName: in.routeName()}},
	})
	if err != nil {
		return nil, err
	}
	tls, err := pack(serverTLS())
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf(ServerListenerTemplate, net.JoinHostPort(address, strconv.Itoa(int(in.listen.port))))
	return newResource(kindListener, name, &listenerv3.Listener{
		Name:             name,
		Address:          endpoint{address, in.listen.port}.proto(),
		TrafficDirection: corev3.TrafficDirection_INBOUND,
		FilterChains: []*listenerv3.FilterChain{{
			Name: in.name(),
			Filters: []*listenerv3.Filter{{
				Name:       managerFilter,
				ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: manager},
			}},
			TransportSocket: &corev3.TransportSocket{
				Name: "envoy.transport_sockets.tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: tls},
			},
		}},
	})
}

// serverTLS returns mutual TLS in the form that gRPC accepts: it refuses a listener with TLS parameters.
func serverTLS() *tlsv3.DownstreamTlsContext {
	provider := &tlsv3.CertificateProviderPluginInstance{InstanceName: CertificateProvider}
	return &tlsv3.DownstreamTlsContext{
		RequireClientCertificate: wrapperspb.Bool(true),
		CommonTlsContext: &tlsv3.CommonTlsContext{
			TlsCertificateProviderInstance: provider,
			ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{
				ValidationContext: &tlsv3.CertificateValidationContext{CaCertificateProviderInstance: provider},
			},
		},
	}
}

// serverRoute routes all requests, with the rules that judge them in place of the filters' denial.
func (in *inbound) serverRoute(rules matching.Rules) (*resource, error) {
	filters := rbac.ClassicFilters(rules)
	configs := map[string]*anypb.Any{}
	for name, filter := range map[string]*httprbac.RBAC{in.denyFilter(): filters.Deny, in.allowFilter(): filters.Allow} {
		packed, err := pack(&httprbac.RBACPerRoute{Rbac: filter})
		if err != nil {
			return nil, err
		}
		configs[name] = packed
	}
	return newResource(kindRoute, in.routeName(), &routev3.RouteConfiguration{
		Name: in.routeName(),
		VirtualHosts: []*routev3.VirtualHost{{
			Name:                 in.routeName(),
			Domains:              []string{"*"},
			TypedPerFilterConfig: configs,
			Routes: []*routev3.Route{{
				Name:   in.routeName(),
				Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: ""}},
				Action: &routev3.Route_NonForwardingAction{NonForwardingAction: &routev3.NonForwardingAction{}},
			}},
		}},
	})
}

// configProblem names the source of the problem that keeps the proxy from its config.
func (p *proxy) configProblem() string {
	if p.proxyless {
		return problemProxyless
	}
	return problemConfig
}

func isEmpty(s string) bool { return s == "" }

// showLimits shows what a state cannot enforce, and reports whether that changed: inbounds that stay closed, and parts
// that a gRPC server does not support.
func (p *proxy) showLimits(s *state) bool {
	if p.proxyless {
		return p.record.setProblem(problemUnsupported, strings.Join(slices.Compact(slices.Concat(s.unsupported, s.unsent)), "; "))
	}
	unsent := p.record.setProblem(problemSpire, strings.Join(s.unsent, "; "))
	return p.record.setProblem(problemInbounds,
		strings.Join(slices.DeleteFunc(slices.Concat([]string{s.accesses.closed()}, s.unrouted, s.unrated), isEmpty), "; ")) || unsent
}
