package xds

import (
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/zone/rbac"
)

// maxEarlyData is how much of the client's first bytes tcp_proxy holds while it connects to the application.
const maxEarlyData = 16 << 10

// secretNames holds the names under which a proxy asks for its identity and its trust bundles.
type secretNames struct {
	identity, trust string
	// spire means that the secrets come from the SPIRE agent beside the proxy. wait is how long the proxy waits for the
	// agent; zero is Envoy's own time.
	spire bool
	wait  time.Duration
}

// handshakeTime is the time limit for a client's handshake.
var handshakeTime = durationpb.New(10 * time.Second)

// listenerKey is everything that the listener of an inbound depends on, apart from the Dataplane.
type listenerKey struct {
	permissive bool
	logged     *inboundLogs
	limits     *connectionLimits
	tls        string
	secrets    secretNames
	by         *provider
	// marks holds the access marks of both sides.
	marks [2]string
}

// inboundListener is the listener of an inbound with its inputs, some of which other proxies share.
type inboundListener struct {
	*resource
	key    listenerKey
	frame  *frame
	chains []chain
}

// listener returns the listener of the ith inbound. From policies, it contains only the access mark of a TCP inbound, the
// settings of MeshTLS and, for HTTP, those of MeshTimeout, MeshTrace and MeshAccessLog. When one of them changes,
// connections drain.
func (t *target) listener(i int, clients accesses) (*resource, error) {
	in, made := &t.inbounds[i], &inboundListener{}
	if len(t.listeners) > 0 {
		made = &t.listeners[i]
	}
	sides := in.judged()
	key := listenerKey{permissive: in.permissive, logged: in.logged, limits: in.limits, tls: t.observed.tls.id,
		secrets: t.secrets, by: t.spans()}
	for j := range sides {
		key.marks[j] = clients[sides[j].accessKey()].mark
	}
	if made.resource != nil && made.key == key {
		return made.resource, nil
	}
	next := inboundListener{key: key, frame: made.frame}
	if next.frame == nil {
		var err error
		if next.frame, err = t.frameOf(in); err != nil {
			return nil, err
		}
	}
	for j := range sides {
		chain, err := sides[j].chain(t, clients[sides[j].accessKey()])
		if err != nil {
			return nil, err
		}
		next.chains = append(next.chains, chain)
	}
	next.resource = next.frame.listener(in.name(), next.chains)
	*made = next
	return made.resource, nil
}

// frameOf builds what the listener of an inbound has apart from chains. No policy changes it.
func (t *target) frameOf(in *inbound) (*frame, error) {
	head, err := marshalled(&listenerv3.Listener{Name: in.name(), Address: in.listen.proto()})
	if err != nil {
		return nil, err
	}
	same, err := theUnvarying()
	if err != nil {
		return nil, err
	}
	rest := &listenerv3.Listener{
		StatPrefix:       in.name(),
		TrafficDirection: corev3.TrafficDirection_INBOUND,
		AccessLog:        in.refused,
		ListenerFilters: []*listenerv3.ListenerFilter{{
			Name:       "envoy.filters.listener.tls_inspector",
			ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: same.inspector},
		}},
	}
	if t.capture.redirects(in) { // the application may have the address itself
		rest.BindToPort = wrapperspb.Bool(false)
	}
	tail, err := marshalled(rest)
	return &frame{string(head), string(tail)}, err
}

// overADS returns the source of resources that come on the ADS stream. The result must not be changed.
var overADS = sync.OnceValue(func() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	}
})

// downstreamTLS returns mutual TLS: a client needs a certificate of an authority that the mesh trusts. It disables
// resumption: in a resumed session, Envoy would not request a certificate and would accept a client whose own has
// expired.
func downstreamTLS(t *target, alpn []string) *tlsv3.DownstreamTlsContext {
	secrets := t.secrets
	return &tlsv3.DownstreamTlsContext{
		RequireClientCertificate:         wrapperspb.Bool(true),
		SessionTicketKeysType:            &tlsv3.DownstreamTlsContext_DisableStatelessSessionResumption{DisableStatelessSessionResumption: true},
		DisableStatefulSessionResumption: true,
		CommonTlsContext: &tlsv3.CommonTlsContext{
			TlsParams:                      t.observed.tls.params(),
			TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{{Name: secrets.identity, SdsConfig: secrets.source()}},
			ValidationContextType: &tlsv3.CommonTlsContext_ValidationContextSdsSecretConfig{
				ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: secrets.trust, SdsConfig: secrets.source()},
			},
			AlpnProtocols: alpn,
		},
	}
}

// newTCPFilters builds filters that judge a connection on its first bytes. Only then does the proxy connect to the
// application, so the application cannot speak to a client that was not judged (envoy-rbac, "Traps"). If the application
// speaks first, the handshake judges the connection, and its first bytes are judged again for the statistics and the log.
func newTCPFilters(in *inbound) (*filterList, error) {
	deny, err := pack(rbac.DenyAllNetwork(in.statPrefix()))
	if err != nil {
		return nil, err
	}
	defaults := map[string]*anypb.Any{in.tcpDryRun(): deny, in.tcpFilter(): deny}
	mode := tcpv3.UpstreamConnectMode_ON_DOWNSTREAM_DATA
	if in.serverFirst {
		mode = tcpv3.UpstreamConnectMode_ON_DOWNSTREAM_TLS_HANDSHAKE
		if defaults[in.handshake()], err = pack(rbac.DenyAllHandshake()); err != nil {
			return nil, err
		}
	}
	bare := &tcpv3.TcpProxy{
		StatPrefix:          in.name(),
		ClusterSpecifier:    &tcpv3.TcpProxy_Cluster{Cluster: in.cluster()},
		UpstreamConnectMode: mode,
		MaxEarlyDataBytes:   wrapperspb.UInt32(maxEarlyData),
	}
	if in.own != nil {
		bare.AccessLog = in.own.logs
	}
	config := proto.CloneOf(bare)
	config.AccessLog = in.logs
	in.limits.onTCP(config)
	last, err := newForwarder(in.chainName(), config, bare)
	if err != nil {
		return nil, err
	}
	limiter, err := in.connectionLimiter()
	if err != nil {
		return nil, err
	}
	note, err := noteClient()
	if err != nil {
		return nil, err
	}
	filters := []*listenerv3.Filter{limiter, note}
	for _, name := range in.filterNames() {
		filters = append(filters, &listenerv3.Filter{
			Name:       name,
			ConfigType: &listenerv3.Filter_ConfigDiscovery{ConfigDiscovery: discovered(defaults[name])},
		})
	}
	return &filterList{append(filters, last.inChain), last.filter}, nil
}

// httpFilters judge each request. The last one, a connection manager, is apart: it has no spans yet.
func httpFilters(in *inbound) ([]*listenerv3.Filter, *hcmv3.HttpConnectionManager, error) {
	manager, err := connectionManager(in)
	if err != nil {
		return nil, nil, err
	}
	in.limits.onManager(manager)
	note, err := noteClient() // routes and logs of connections without a request read this note
	if err != nil {
		return nil, nil, err
	}
	limiter, err := in.connectionLimiter()
	return []*listenerv3.Filter{limiter, note}, manager, err
}
