package xds

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	upstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// clusterPart is the cluster of a backend without the identity that the proxy presents. Proxies share it. It is immutable.
type clusterPart struct {
	partKey
}

type partKey struct {
	name string
	// config is the rest of the cluster, marshalled.
	config string
	asks   asks
}

// asks describes how a cluster requests a service in the handshake.
type asks struct {
	// sni is the server name, and hashed its other spelling where an endpoint may need that; empty for none.
	sni, hashed string
	// others are the server names of other endpoints, in lines.
	others string
	// trust names the secret that verifies the service.
	trust string
	alpn  string
}

// socketKey is everything that a cluster's handshake depends on, but for the name of the identity.
type socketKey struct {
	asks
	secrets unnamedSecrets
	tls     string
}

// presented is what the clusters of a proxy have of the proxy itself.
type presented struct {
	secrets secretNames
	tls     string
}

// identified is a cluster with the parts that it was built from, which other proxies share.
type identified struct {
	part   *clusterPart
	socket *stencil
	*resource
}

// cluster builds the cluster of a backend: mutual TLS with the SPIFFE IDs that the service may have, to endpoints that
// come by EDS. The plan keeps what others share of it.
func (s *sender) cluster(p *plan, b *backend) (*clusterPart, error) {
	made, err := s.clusterConfig(b)
	if err != nil {
		return nil, err
	}
	p.configs = append(p.configs, made)
	key := partKey{name: b.name, config: made.config, asks: asks{sni: b.sni(), trust: b.trust(), alpn: b.alpn(),
		hashed: b.spelling(s.target.match.Zone), others: strings.Join(b.serverNames(), "\n")}}
	return s.target.shared.parts.put(key, &clusterPart{key}), nil
}

// identify adds the clusters of a plan, with the proxy's own identity.
func (s *sender) identify(p *plan, out *sending) error {
	out.clusters = make([]identified, len(p.clusters))
	out.by = presented{s.secrets, s.target.observed.tls.id}
	for i, part := range p.clusters {
		made := s.last.identified(i, part, &out.by)
		if made == nil {
			var err error
			if made, err = s.present(part); err != nil {
				return fmt.Errorf("%s: %w", part.name, err)
			}
		}
		out.clusters[i] = *made
		out.sets[kindCluster] = append(out.sets[kindCluster], made.resource)
	}
	return nil
}

// identified returns the cluster that was built from the same part for the same proxy; nil if there is none. i is a guess
// at its position.
func (s *sending) identified(i int, of *clusterPart, by *presented) *identified {
	if s == nil || len(s.clusters) == 0 || s.by != *by {
		return nil
	}
	if i >= len(s.clusters) || s.clusters[i].part != of {
		i, _ = slices.BinarySearchFunc(s.clusters, of.name,
			func(c identified, name string) int { return strings.Compare(c.name, name) })
	}
	if i < len(s.clusters) && s.clusters[i].part == of {
		return &s.clusters[i]
	}
	return nil
}

// present returns a cluster that presents the proxy's own identity.
func (s *sender) present(part *clusterPart) (*identified, error) {
	secrets, err := s.secrets.unnamed()
	if err != nil {
		return nil, err
	}
	tls := &s.target.observed.tls
	key := socketKey{part.asks, secrets, tls.id}
	socket, err := s.target.shared.sockets.get(key, func() (*stencil, error) {
		identity := gap(secrets.length)
		config, err := key.config(identity, tls.params())
		return newStencil(config, identity), err
	})
	if err != nil {
		return nil, err
	}
	// The handshake settings follow the rest of the marshalled cluster, which makes one message.
	message := append(make([]byte, 0, len(part.config)+socket.size(s.secrets.identity)), part.config...)
	return &identified{part, socket, resourceOf(part.name, &anypb.Any{TypeUrl: typeURLs[kindCluster],
		Value: socket.appendTo(message, s.secrets.identity)})}, nil
}

// config requests the service by its server name, which ingresses route by, and presents the proxy's own identity. The
// other spelling is for endpoints that need it.
func (k *socketKey) config(identity string, params *tlsv3.TlsParameters) ([]byte, error) {
	as := &k.asks
	context := &tlsv3.UpstreamTlsContext{
		Sni: as.sni,
		CommonTlsContext: &tlsv3.CommonTlsContext{
			TlsParams:                      params,
			TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{{Name: identity, SdsConfig: k.secrets.source()}},
			ValidationContextType: &tlsv3.CommonTlsContext_ValidationContextSdsSecretConfig{
				ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: as.trust, SdsConfig: overADS()},
			},
		},
	}
	tls, err := tlsSocket(as.alpn, context)
	if err != nil {
		return nil, err
	}
	c := &clusterv3.Cluster{TransportSocket: tls}
	if as.hashed != "" {
		err = as.addMatch(c, context, hashedSpelling, as.hashed)
	}
	for _, name := range strings.Fields(as.others) {
		err = errors.Join(err, as.addMatch(c, context, name, name))
	}
	if err != nil {
		return nil, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(c)
}

// addMatch adds the handshake with endpoints whose metadata asks for another server name.
func (as *asks) addMatch(c *clusterv3.Cluster, context *tlsv3.UpstreamTlsContext, match, name string) error {
	context.Sni = name
	other, err := tlsSocket(as.alpn, context)
	c.TransportSocketMatches = append(c.TransportSocketMatches, &clusterv3.Cluster_TransportSocketMatch{
		Name: match, Match: serverNameMatch(match), TransportSocket: other})
	return err
}

// alpn returns the protocol that a connection to the backend requests; empty for none.
func (b *backend) alpn() string {
	switch {
	case b.http2():
		return "h2"
	case b.http():
		return "http/1.1"
	}
	return ""
}

// tlsSocket returns the transport socket that offers a protocol, unless it is empty.
func tlsSocket(alpn string, context *tlsv3.UpstreamTlsContext) (*corev3.TransportSocket, error) {
	if alpn != "" {
		context.CommonTlsContext.AlpnProtocols = []string{alpn}
	}
	packed, err := pack(context)
	if err != nil {
		return nil, err
	}
	return &corev3.TransportSocket{
		Name: "envoy.transport_sockets.tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed},
	}, nil
}

func httpOptions(b *backend, limits *timeouts) (map[string]*anypb.Any, error) {
	explicit := &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig{
		ProtocolConfig: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{HttpProtocolOptions: &corev3.Http1ProtocolOptions{}},
	}
	if b.http2() {
		explicit.ProtocolConfig = &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &corev3.Http2ProtocolOptions{}}
	}
	options, err := pack(&upstreamv3.HttpProtocolOptions{
		CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{
			IdleTimeout: durationpb.New(limits.idle), MaxConnectionDuration: durationOf(limits.maxConnection),
		},
		UpstreamProtocolOptions: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: explicit},
	})
	if err != nil {
		return nil, err
	}
	return map[string]*anypb.Any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options}, nil
}
