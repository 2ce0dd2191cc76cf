package xds

import (
	"cmp"
	"fmt"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// forGRPC converts an Envoy's resources for its outbounds into a form that gRPC's own client accepts, under the same
// names: a program dials xds:///<KRI of the service's port>. It leaves out what it cannot convert, and returns that in
// unsupported.
func forGRPC(sets [kinds]set) (out [kinds]set, unsupported []string) {
	for k, rewrite := range map[kind]func(*resource) (*resource, error){
		kindListener: apiListener,
		kindRoute:    clientRoutes,
		kindEndpoint: clientEndpoints,
		kindCluster:  func(r *resource) (*resource, error) { return clientCluster(r, sets[kindSecret]) },
	} {
		for _, r := range sets[k] {
			rewritten, err := rewrite(r)
			if err != nil {
				unsupported = append(unsupported, fmt.Sprintf("%s: %v", r.name, err))
				continue
			}
			out[k] = append(out[k], rewritten)
		}
		out[k] = newSet(out[k]...)
	}
	slices.Sort(unsupported)
	return out, unsupported
}

// apiListener returns the listener of an outbound without a port: the program itself uses the connection manager in it.
func apiListener(r *resource) (*resource, error) {
	listener, manager := &listenerv3.Listener{}, &hcmv3.HttpConnectionManager{}
	if err := r.delta.GetResource().UnmarshalTo(listener); err != nil {
		return nil, err
	}
	filter := listener.GetFilterChains()[0].GetFilters()[0].GetTypedConfig()
	if !filter.MessageIs(manager) {
		return nil, fmt.Errorf("%w: a gRPC client sends only to http, http2 and grpc", ErrConfig)
	}
	if err := filter.UnmarshalTo(manager); err != nil {
		return nil, err
	}
	packed, err := pack(&hcmv3.HttpConnectionManager{
		StatPrefix: manager.GetStatPrefix(), HttpFilters: manager.GetHttpFilters(),
		RouteSpecifier: manager.GetRouteSpecifier(),
	})
	if err != nil {
		return nil, err
	}
	return newResource(kindListener, r.name,
		&listenerv3.Listener{Name: r.name, ApiListener: &listenerv3.ApiListener{ApiListener: packed}})
}

// clientRoutes returns the routes without retry policies of zero retries, for which gRPC would refuse all routes.
func clientRoutes(r *resource) (*resource, error) {
	routes := &routev3.RouteConfiguration{}
	if err := r.delta.GetResource().UnmarshalTo(routes); err != nil {
		return nil, err
	}
	for _, host := range routes.GetVirtualHosts() {
		for _, route := range host.GetRoutes() {
			if n := route.GetRoute().GetRetryPolicy().GetNumRetries(); n != nil && n.GetValue() == 0 {
				route.GetRoute().RetryPolicy = nil
			}
		}
	}
	return newResource(kindRoute, r.name, routes)
}

// clientEndpoints returns endpoints with weights: gRPC ignores a locality without one. Where Envoy chooses among all
// endpoints alike, each locality has the weight of its endpoints.
func clientEndpoints(r *resource) (*resource, error) {
	assignment := &endpointv3.ClusterLoadAssignment{}
	if err := r.delta.GetResource().UnmarshalTo(assignment); err != nil {
		return nil, err
	}
	for _, l := range assignment.GetEndpoints() {
		alike := uint32(max(len(l.GetLbEndpoints()), 1))
		l.LoadBalancingWeight = wrapperspb.UInt32(cmp.Or(l.GetLoadBalancingWeight().GetValue(), alike))
	}
	return newResource(kindEndpoint, r.name, assignment)
}

// clientCluster returns a cluster that takes its certificates from files, and contains the SPIFFE IDs of the service:
// gRPC does not request secrets.
func clientCluster(r *resource, secrets set) (*resource, error) {
	cluster, secret := &clusterv3.Cluster{}, &tlsv3.Secret{}
	if err := r.delta.GetResource().UnmarshalTo(cluster); err != nil {
		return nil, err
	}
	identities := secrets.get(identitiesOf(r.name))
	if identities == nil {
		return nil, fmt.Errorf("%w: its identities are not known yet", ErrConfig)
	}
	if err := identities.delta.GetResource().UnmarshalTo(secret); err != nil {
		return nil, err
	}
	envoys := &tlsv3.UpstreamTlsContext{}
	if err := cluster.GetTransportSocket().GetTypedConfig().UnmarshalTo(envoys); err != nil {
		return nil, err
	}
	provider := &tlsv3.CertificateProviderPluginInstance{InstanceName: CertificateProvider}
	validation := &tlsv3.CertificateValidationContext{CaCertificateProviderInstance: provider}
	for _, m := range secret.GetValidationContext().GetMatchTypedSubjectAltNames() {
		validation.MatchSubjectAltNames = append(validation.MatchSubjectAltNames, m.GetMatcher()) //nolint:staticcheck // the only names that gRPC reads
	}
	tls, err := pack(&tlsv3.UpstreamTlsContext{
		Sni: envoys.GetSni(),
		CommonTlsContext: &tlsv3.CommonTlsContext{
			TlsCertificateProviderInstance: provider,
			ValidationContextType:          &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: validation},
		},
	})
	if err != nil {
		return nil, err
	}
	cluster.TransportSocket = &corev3.TransportSocket{
		Name: "envoy.transport_sockets.tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: tls},
	}
	cluster.TypedExtensionProtocolOptions, cluster.TransportSocketMatches = nil, nil
	return newResource(kindCluster, r.name, cluster)
}
