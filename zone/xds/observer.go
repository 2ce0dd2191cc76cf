package xds

import (
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Names of observers end so. They include the protocol, as those of other filters by ECDS do.
const observesHTTP, observesTCP = "_observed_http", "_observed_tcp"

// renewedAfter is how long a connection of HTTP may keep the observer, or the filter in its place, that it began with.
// Then the client gets another connection, once its requests have ended.
const renewedAfter = 30 * time.Second

// observer is the last filter of a chain on which a MeshAccessLog or a MeshTrace decides: the connection manager or the
// TCP proxy, which alone hold logs and spans. It comes by ECDS, so that a change of these policies replaces no listener
// and ends no connection: those that are open go on with the observer that they began with.
type observer struct {
	// inChain is the filter as the listener has it, and filter as ECDS serves it.
	inChain *listenerv3.Filter
	filter  *resource
}

// newObserver makes the observer of a chain. bare is the filter without logs and spans of policies: it is in use until
// the other one arrives, or if the proxy refuses that. It also asks for the routes and filters that both need, since
// Envoy begins to ask for those of a listener only while the listener warms. Connections that begin with it are renewed
// too: nothing would log them otherwise, for as long as they last.
func newObserver(chain string, observing, bare message) (*observer, error) {
	name := chain + observesTCP
	for _, one := range []message{observing, bare} {
		if manager, http := one.(*hcmv3.HttpConnectionManager); http {
			name = chain + observesHTTP
			renew(manager)
		}
	}
	until, err := pack(bare)
	if err != nil {
		return nil, err
	}
	filter, err := newExtension(name, observing)
	return &observer{filter: filter, inChain: &listenerv3.Filter{Name: name,
		ConfigType: &listenerv3.Filter_ConfigDiscovery{ConfigDiscovery: &corev3.ExtensionConfigSource{
			ConfigSource: overADS(), DefaultConfig: until, TypeUrls: []string{until.TypeUrl}}}}}, err
}

// lastFilter returns the last filter of a chain on which no such policy decides.
func lastFilter(config message) (*listenerv3.Filter, error) {
	name := "envoy.filters.network.http_connection_manager"
	if _, tcp := config.(*tcpv3.TcpProxy); tcp {
		name = "envoy.filters.network.tcp_proxy"
	}
	packed, err := pack(config)
	return &listenerv3.Filter{Name: name, ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed}}, err
}

// renew makes clients of a connection manager open a new connection now and then, unless a MeshTimeout says when.
func renew(m *hcmv3.HttpConnectionManager) {
	if m.CommonHttpProtocolOptions == nil {
		m.CommonHttpProtocolOptions = &corev3.HttpProtocolOptions{}
	}
	if m.CommonHttpProtocolOptions.MaxConnectionDuration == nil {
		m.CommonHttpProtocolOptions.MaxConnectionDuration = durationpb.New(renewedAfter)
		m.Http1SafeMaxConnectionDuration = true
	}
}

// whole reports whether the proxy's listeners contain everything: MeshProxyPatches change what is in them, and gRPC
// knows no filters by ECDS.
func (t *target) whole() bool { return t.proxyless || len(t.observed.patches) > 0 || t.observed.closed }

// isObserver reports whether a filter is an observer.
func isObserver(filter string) bool {
	return strings.HasSuffix(filter, observesHTTP) || strings.HasSuffix(filter, observesTCP)
}

// withoutNewObservers leaves out the observers that the proxy has not: they name the clusters of collectors, and the
// proxy refuses those that it does not know.
func withoutNewObservers(filters set, known map[string]string) (out set, left bool) {
	for _, r := range filters {
		if isObserver(r.name) && known[r.name] != r.version {
			left = true
			continue
		}
		out = append(out, r)
	}
	return out, left
}
