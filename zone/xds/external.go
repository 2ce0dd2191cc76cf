package xds

import (
	"cmp"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
)

// newExternal builds the cluster of a MeshExternalService from its key and the certificate that proxies present. It carries
// no identity of the proxy, and uses TLS only if the MeshExternalService asks for it. The endpoints are part of the cluster,
// since Envoy resolves their names.
func (s *sender) newExternal(b *backend, key *externalKey, client *tlsv3.TlsCertificate) (*externalCluster, error) {
	limits := s.timeoutsOf(s.timeouts.For(b.key()))
	c := &clusterv3.Cluster{
		Name:                 b.name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		ConnectTimeout:       durationpb.New(limits.connect),
		LoadAssignment:       externalEndpoints(b),
	}
	if slices.ContainsFunc(b.external.Endpoints, func(e resources.ExternalEndpoint) bool { return !isIP(e.Address) }) {
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS}
		c.DnsLookupFamily = clusterv3.Cluster_V4_PREFERRED
	}
	undialled := func(why string) {
		s.problem(b.name, "it is not dialled: "+why)
		c.LoadAssignment = &endpointv3.ClusterLoadAssignment{ClusterName: b.name}
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
	}
	if key.here != "" {
		undialled(key.here)
	}
	tls, err := b.external.ReadTLS()
	if err != nil {
		return nil, err
	}
	if tls != nil {
		if client == nil && key.client != "" {
			undialled(key.client)
		}
		if c.TransportSocket, err = externalTLS(b, tls, client); err != nil {
			return nil, err
		}
	}
	if b.http() {
		if c.TypedExtensionProtocolOptions, err = httpOptions(b, &limits); err != nil {
			return nil, err
		}
	}
	s.breaker(c, b)
	s.balance(c, b)
	s.healthCheck(c, b)
	cluster, err := newResource(kindCluster, b.name, c)
	if err != nil {
		return nil, err
	}
	return &externalCluster{cluster, s.notes()}, nil
}

func isIP(address string) bool {
	_, err := resources.ParseIP(address)
	return err == nil
}

// externalEndpoints returns the endpoints, tried by priority, 0 first. Envoy requires priorities without gaps.
func externalEndpoints(b *backend) *endpointv3.ClusterLoadAssignment {
	byPriority := map[uint32][]*endpointv3.LbEndpoint{}
	var priorities []uint32
	for _, e := range b.external.Endpoints {
		at := uint32(0)
		if e.Priority != nil {
			at = *e.Priority
		}
		if byPriority[at] == nil {
			priorities = append(priorities, at)
		}
		host := e.Address
		if isIP(host) {
			host = ""
		}
		byPriority[at] = append(byPriority[at],
			&endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
				Address: endpoint{address: e.Address, port: e.Port}.proto(), Hostname: cmp.Or(host, externalName(b)),
			}}})
	}
	slices.Sort(priorities)
	out := &endpointv3.ClusterLoadAssignment{ClusterName: b.name}
	for i, at := range priorities {
		out.Endpoints = append(out.Endpoints, &endpointv3.LocalityLbEndpoints{Priority: uint32(i),
			LbEndpoints: byPriority[at]})
	}
	return out
}

// externalName returns the server's name: from its TLS settings, or else the first endpoint that has a name; empty if
// all are addresses.
func externalName(b *backend) string {
	if tls, err := b.external.ReadTLS(); err == nil && tls != nil && tls.Verification.ServerName != "" {
		return tls.Verification.ServerName
	}
	for _, e := range b.external.Endpoints {
		if !isIP(e.Address) {
			return e.Address
		}
	}
	return ""
}

// externalTLS verifies the server as the MeshExternalService asks. client is the certificate that the proxy presents;
// nil for none.
func externalTLS(b *backend, tls *resources.ExternalTLS, client *tlsv3.TlsCertificate) (*corev3.TransportSocket,
	error) {
	v := &tls.Verification
	context := &tlsv3.UpstreamTlsContext{
		Sni: externalName(b), AllowRenegotiation: tls.AllowRenegotiation,
		CommonTlsContext: &tlsv3.CommonTlsContext{
			TlsParams: &tlsv3.TlsParameters{TlsMinimumProtocolVersion: tlsVersion(tls.Version.Min),
				TlsMaximumProtocolVersion: tlsVersion(tls.Version.Max)},
		},
	}
	validation := &tlsv3.CertificateValidationContext{}
	if v.ChecksAuthority() {
		text, err := v.CACert.Text()
		if err != nil {
			return nil, err
		}
		validation.TrustedCa = inline([]byte(text))
	} else {
		validation.TrustChainVerification = tlsv3.CertificateValidationContext_ACCEPT_UNTRUSTED
	}
	if v.ChecksName() {
		validation.MatchTypedSubjectAltNames = externalNames(b, v)
	}
	context.CommonTlsContext.ValidationContextType = &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: validation}
	if client != nil {
		context.CommonTlsContext.TlsCertificates = []*tlsv3.TlsCertificate{client}
	}
	return tlsSocket(b.alpn(), context)
}

// externalNames returns the names that the server's certificate may have: those given, or else the server's name, or
// its addresses.
func externalNames(b *backend, v *resources.ExternalVerification) []*tlsv3.SubjectAltNameMatcher {
	var out []*tlsv3.SubjectAltNameMatcher
	add := func(value string, prefix bool) {
		match := &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: value}}
		if prefix {
			match.MatchPattern = &matcherv3.StringMatcher_Prefix{Prefix: value}
		}
		kind := tlsv3.SubjectAltNameMatcher_DNS
		if isIP(value) {
			kind = tlsv3.SubjectAltNameMatcher_IP_ADDRESS
		}
		out = append(out, &tlsv3.SubjectAltNameMatcher{SanType: kind, Matcher: match})
	}
	for _, san := range v.SubjectAltNames {
		add(san.Value, san.Type == resources.MatchPrefix)
	}
	if name := externalName(b); len(out) == 0 && name != "" {
		add(name, false)
	}
	if len(out) == 0 {
		for _, e := range b.external.Endpoints {
			add(e.Address, false)
		}
	}
	return out
}

func tlsVersion(name string) tlsv3.TlsParameters_TlsProtocol {
	switch name {
	case "TLS10":
		return tlsv3.TlsParameters_TLSv1_0
	case "TLS11":
		return tlsv3.TlsParameters_TLSv1_1
	case "TLS12":
		return tlsv3.TlsParameters_TLSv1_2
	case "TLS13":
		return tlsv3.TlsParameters_TLSv1_3
	}
	return tlsv3.TlsParameters_TLS_AUTO
}

// rewriteHost sets the host of requests: a server outside the mesh expects its own name. Envoy leaves the host alone if
// an endpoint has no name, as endpoints of the mesh do.
func rewriteHost(action *routev3.RouteAction, shares []weighted, service *backend) {
	leaves := service.external != nil && len(shares) == 0
	for _, w := range shares {
		leaves = leaves || w.backend != nil && w.backend.external != nil
	}
	if leaves {
		action.HostRewriteSpecifier = &routev3.RouteAction_AutoHostRewrite{AutoHostRewrite: wrapperspb.Bool(true)}
	}
}
