package zone

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	mutatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	healthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/health_check/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/kubernetes/injection"
)

const (
	// probesName names the listener that answers the kubelet's probes.
	probesName = "causeway_probes"
	// probeAgent is the user agent of requests to the application. It begins like the kubelet's.
	probeAgent = "kube-probe/causeway"
	// hookTime limits how long a hook's request may send nothing; the kubelet ends it earlier. A connection without a
	// request ends much earlier, because anybody may open one and it counts against the same limit as connections of
	// the mesh.
	hookTime = time.Hour
)

// noBody refuses a request with a body. Routes cannot detect a chunked body by its headers.
const noBody = `
function envoy_on_request(request)
  local body = request:body()
  if body ~= nil and body:length() > 0 then request:respond({[":status"] = "404"}, "") end
end
`

// addProbes adds the listener for the kubelet's probes. It answers GET for the paths of the probes only. The
// application receives only the fact of a request: path, query, headers and host come from the probe. The proxy answers
// TCP and gRPC probes from its own checks of the port.
func (cfg *BootstrapConfig) addProbes(b *bootstrapv3.Bootstrap) error {
	if len(cfg.Probes) == 0 {
		return nil
	}
	at, err := netip.ParseAddrPort(cfg.ProbeAddress)
	if err != nil || at.Port() == 0 {
		return fmt.Errorf("probe address %q: want an IP address and a port, such as 0.0.0.0:15020", cfg.ProbeAddress)
	}
	p := &prober{clusters: map[string]bool{}, b: b, address: cfg.ApplicationAddress, six: cfg.ApplicationIPv6}
	if !cfg.ApplicationLater {
		address, err := netip.ParseAddr(cfg.ApplicationAddress)
		if err != nil {
			return fmt.Errorf("application address %q: want the application's IP address", cfg.ApplicationAddress)
		}
		address = address.Unmap()
		p.address, p.six, p.loopback = address.String(), address.Is6(), address.IsLoopback()
	}
	if cfg.ZoneIngress != "" || len(cfg.Probes) > injection.MaxProbes {
		return fmt.Errorf("probes: want a proxy of a Dataplane, and at most %d", injection.MaxProbes)
	}
	for i := range cfg.Probes {
		if err := p.add(&cfg.Probes[i]); err != nil {
			return fmt.Errorf("probes[%d]: %w", i, err)
		}
	}
	manager, err := p.manager()
	if err != nil {
		return err
	}
	address := socketAddress(at.Addr().String(), uint32(at.Port()))
	if at.Addr() == netip.IPv6Unspecified() {
		address.GetSocketAddress().Ipv4Compat = true
	}
	b.StaticResources.Listeners = append(b.StaticResources.Listeners, &listenerv3.Listener{
		Name: probesName, StatPrefix: probesName, Address: address, TrafficDirection: corev3.TrafficDirection_INBOUND,
		PerConnectionBufferLimitBytes: wrapperspb.UInt32(readyBuffer),
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name:       "envoy.filters.network.http_connection_manager",
			ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: manager},
		}}}},
	})
	return nil
}

// prober builds the configuration that answers probes.
type prober struct {
	b *bootstrapv3.Bootstrap
	// address is that of the application, six reports whether it is of IPv6.
	address       string
	six, loopback bool
	// clusters holds the names of the clusters added so far.
	clusters map[string]bool
	routes   []*routev3.Route
	checks   []*healthv3.HealthCheck
}

func (p *prober) add(probe *injection.Probe) error {
	if !strings.HasPrefix(probe.Path, "/") || strings.ContainsAny(probe.Path, "?# %") {
		return fmt.Errorf("path %q: want one that begins with a slash, without a query", probe.Path)
	}
	if probe.Port == 0 || probe.Port > 65535 || probe.Timeout < 0 {
		return fmt.Errorf("port %d, timeout %d: want a port from 1 to 65535, and seconds", probe.Port, probe.Timeout)
	}
	switch {
	case probe.HTTPGet != nil:
		return p.addRequest(probe)
	case probe.TCPSocket != nil, probe.GRPC != nil:
		return p.addCheck(probe)
	}
	return errors.New("want httpGet, tcpSocket or grpc")
}

// asked matches a GET of exactly a probe's path, with neither a query nor a body.
func asked(path string) []*routev3.HeaderMatcher {
	exactly := func(header, value string) *routev3.HeaderMatcher {
		return &routev3.HeaderMatcher{Name: header, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{
			StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: value}}}}
	}
	absent := func(header string) *routev3.HeaderMatcher {
		return &routev3.HeaderMatcher{Name: header, HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: false}}
	}
	return []*routev3.HeaderMatcher{exactly(":method", "GET"), exactly(":path", path), absent("content-length")}
}

// addRequest makes the proxy send the kubelet's request to the application.
func (p *prober) addRequest(probe *injection.Probe) error {
	get := probe.HTTPGet
	secure := strings.EqualFold(get.Scheme, "https")
	cluster, err := p.requestCluster(probe.Port, secure)
	if err != nil {
		return err
	}
	action := &routev3.RouteAction{
		ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}, Timeout: durationpb.New(time.Duration(probe.Timeout) * time.Second),
		IdleTimeout: durationpb.New(hookTime), PrefixRewrite: requestPath(get.Path),
		HostRewriteSpecifier: &routev3.RouteAction_HostRewriteLiteral{
			HostRewriteLiteral: p.host(probe.Port)},
	}
	route := &routev3.Route{
		Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Path{Path: probe.Path}, Headers: asked(probe.Path)},
		Action: &routev3.Route_Route{Route: action},
		// The kubelet would follow it to the proxy, where it leads nowhere. It treats a bare redirect as success.
		ResponseHeadersToRemove: []string{"location"},
	}
	agent, accept := false, false
	for _, h := range get.Headers {
		switch name := strings.ToLower(h["name"]); {
		case name == "host" && h["value"] == "": // the kubelet sends the address then; Envoy would pass on the caller's
			continue
		case name == "host":
			action.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: h["value"]}
			continue
		case name == "content-length" || name == "transfer-encoding" || strings.HasPrefix(name, ":"):
			continue
		case name == "user-agent":
			agent = true
		case name == "accept":
			accept = true
		}
		route.RequestHeadersToAdd = append(route.RequestHeadersToAdd, header(h["name"], h["value"]))
	}
	if !agent {
		route.RequestHeadersToAdd = append(route.RequestHeadersToAdd, header("user-agent", probeAgent))
	}
	if !accept {
		route.RequestHeadersToAdd = append(route.RequestHeadersToAdd, header("accept", "*/*"))
	}
	if err := route.Validate(); err != nil { // Envoy would not start
		return err
	}
	p.routes = append(p.routes, route)
	return nil
}

// host returns the host of a request to a port of the application.
func (p *prober) host(port uint32) string {
	if p.six {
		return fmt.Sprintf("[%s]:%d", p.address, port)
	}
	return fmt.Sprintf("%s:%d", p.address, port)
}

// header adds a header with a literal value.
func header(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{AppendAction: corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD, KeepEmptyValue: true,
		Header: &corev3.HeaderValue{Key: name, Value: strings.ReplaceAll(value, "%", "%%")}}
}

// requestPath returns the request path that the kubelet derives from a probe's path, which may have a query.
func requestPath(path string) string {
	u, err := url.Parse(path)
	if err != nil {
		u = &url.URL{Path: path}
	}
	if !strings.HasPrefix(u.Path, "/") {
		u.Path, u.RawPath = "/"+u.Path, ""
	}
	asked := url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}
	return asked.RequestURI()
}

// addCheck makes the proxy check a port itself, and answer with the result.
func (p *prober) addCheck(probe *injection.Probe) error {
	cluster, err := p.checkedCluster(probe)
	if err != nil {
		return err
	}
	p.checks = append(p.checks, &healthv3.HealthCheck{PassThroughMode: wrapperspb.Bool(false), Headers: asked(probe.Path),
		ClusterMinHealthyPercentages: map[string]*typev3.Percent{cluster: {Value: 100}}})
	return nil
}

// manager builds the connection manager: first the answers from checks, then the filter that drops the caller's
// headers.
func (p *prober) manager() (*anypb.Any, error) {
	var filters []*hcmv3.HttpFilter
	add := func(name string, config proto.Message) error {
		packed, err := anypb.New(config)
		filters = append(filters, &hcmv3.HttpFilter{Name: name, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: packed}})
		return err
	}
	for i, check := range p.checks {
		if err := add(fmt.Sprintf("envoy.filters.http.health_check.%d", i), check); err != nil {
			return nil, err
		}
	}
	if err := add("envoy.filters.http.lua", &luav3.Lua{DefaultSourceCode: &corev3.DataSource{
		Specifier: &corev3.DataSource_InlineString{InlineString: noBody}}}); err != nil {
		return nil, err
	}
	all := &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: "[^:].*"}}}
	none := &mutatev3.HeaderMutation{Mutations: &mutatev3.Mutations{RequestMutations: []*mutationv3.HeaderMutation{{
		Action: &mutationv3.HeaderMutation_RemoveOnMatch_{RemoveOnMatch: &mutationv3.HeaderMutation_RemoveOnMatch{KeyMatcher: all}}}}}}
	if err := errors.Join(add("envoy.filters.http.header_mutation", none),
		add("envoy.filters.http.router", &routerv3.Router{SuppressEnvoyHeaders: true})); err != nil {
		return nil, err
	}
	return anypb.New(&hcmv3.HttpConnectionManager{
		StatPrefix: probesName, CodecType: hcmv3.HttpConnectionManager_HTTP1,
		RequestTimeout: durationpb.New(defaultReadyTime), RequestHeadersTimeout: durationpb.New(defaultReadyTime), StreamIdleTimeout: durationpb.New(hookTime),
		CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{IdleTimeout: durationpb.New(defaultReadyTime)},
		GenerateRequestId:         wrapperspb.Bool(false), SkipXffAppend: true,
		HttpFilters: filters,
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			Name:         probesName,
			VirtualHosts: []*routev3.VirtualHost{{Name: probesName, Domains: []string{"*"}, Routes: p.routes}},
		}},
	})
}
