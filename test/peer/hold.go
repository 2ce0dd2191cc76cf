package peer

import (
	"bytes"
	"fmt"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// versionsOf returns the versions of the proxy's resources of a type, by name.
func (p *Proxy) versionsOf(t string) map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]string{}
	for name, one := range p.have[t] {
		out[name] = one.version
	}
	return out
}

// versionOf returns the version of all resources of a type, in the older form of the protocol.
func (p *Proxy) versionOf(t string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.versions[t]
}

func (p *Proxy) keep(t string, changed map[string]held, removed []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages++
	if t == routeType {
		p.caughtUp = true
	}
	if p.have[t] == nil {
		p.have[t] = map[string]held{}
	}
	for _, name := range removed {
		delete(p.have[t], name)
		p.came = append(p.came, "-"+name)
	}
	for name, one := range changed {
		asked := t == routeType && bytes.Equal(p.have[t][name].raw, one.raw) // Reconnect asks for the same again
		p.have[t][name] = one
		if !asked {
			p.came = append(p.came, name)
		}
	}
}

// replace stores a response of the older form: all listeners and clusters, or the requested resources of other types.
func (p *Proxy) replace(response *discovery.DiscoveryResponse) error {
	changed := map[string]held{}
	for _, r := range response.Resources {
		name, err := nameOf(r)
		if err != nil {
			return err
		}
		changed[name] = held{raw: r.GetValue()}
	}
	var removed []string
	if t := response.TypeUrl; t == ListenerType || t == ClusterType {
		for name := range p.Have(t) {
			if _, still := changed[name]; !still {
				removed = append(removed, name)
			}
		}
	}
	p.keep(response.TypeUrl, changed, removed)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.versions[response.TypeUrl] = response.VersionInfo
	return nil
}

// nameOf reads the name inside a resource. The older form does not send it separately.
func nameOf(r *anypb.Any) (string, error) {
	var message interface {
		proto.Message
		GetName() string
	}
	switch r.GetTypeUrl() {
	case ClusterType:
		message = &clusterv3.Cluster{}
	case ListenerType:
		message = &listenerv3.Listener{}
	case ExtensionType:
		message = &corev3.TypedExtensionConfig{}
	case SecretType:
		message = &tlsv3.Secret{}
	default:
		return "", fmt.Errorf("nobody asked for a %s", r.GetTypeUrl())
	}
	err := r.UnmarshalTo(message)
	return message.GetName(), err
}

// referred returns the names that the listeners leave to discovery, by type, sorted: filters, and secrets if the proxy
// requests them.
func (p *Proxy) referred() map[string][]string {
	out := map[string][]string{ExtensionType: nil}
	if p.cfg.Secrets {
		out[SecretType] = nil
	}
	for _, raw := range p.Have(ListenerType) {
		l := &listenerv3.Listener{}
		if (&anypb.Any{TypeUrl: ListenerType, Value: raw}).UnmarshalTo(l) != nil {
			continue
		}
		for _, chain := range l.GetFilterChains() {
			out[ExtensionType] = append(out[ExtensionType], filtersOf(chain)...)
			if p.cfg.Secrets {
				out[SecretType] = append(out[SecretType], secretsOf(chain)...)
			}
		}
	}
	for t := range out {
		slices.Sort(out[t])
		out[t] = slices.Compact(out[t])
	}
	return out
}

func filtersOf(chain *listenerv3.FilterChain) (names []string) {
	for _, f := range chain.GetFilters() {
		if f.GetConfigDiscovery() != nil {
			names = append(names, f.GetName())
		}
		manager := &hcmv3.HttpConnectionManager{}
		if f.GetTypedConfig().UnmarshalTo(manager) != nil {
			continue
		}
		for _, hf := range manager.GetHttpFilters() {
			if hf.GetConfigDiscovery() != nil {
				names = append(names, hf.GetName())
			}
		}
	}
	return names
}

func secretsOf(chain *listenerv3.FilterChain) (names []string) {
	tls := &tlsv3.DownstreamTlsContext{}
	if chain.GetTransportSocket().GetTypedConfig().UnmarshalTo(tls) != nil {
		return nil
	}
	for _, s := range tls.GetCommonTlsContext().GetTlsCertificateSdsSecretConfigs() {
		names = append(names, s.GetName())
	}
	if name := tls.GetCommonTlsContext().GetValidationContextSdsSecretConfig().GetName(); name != "" {
		names = append(names, name)
	}
	return names
}
