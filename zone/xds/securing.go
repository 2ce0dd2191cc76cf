package xds

import (
	"encoding/json"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// handshakes holds the TLS settings for both ends of a mesh connection. The zero value applies without a MeshTLS.
type handshakes struct {
	// oldest and newest are TLS12 or TLS13 of package resources; empty for the default.
	oldest, newest string
	ciphers        []string
	// id identifies all of it.
	id string
}

func (h *handshakes) params() *tlsv3.TlsParameters {
	out := &tlsv3.TlsParameters{
		TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2,
		TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3,
		CipherSuites:              h.ciphers,
	}
	if h.oldest == resources.TLS13 {
		out.TlsMinimumProtocolVersion = tlsv3.TlsParameters_TLSv1_3
	} else if h.newest == resources.TLS12 {
		out.TlsMaximumProtocolVersion = tlsv3.TlsParameters_TLSv1_2
	}
	return out
}

// secure applies MeshTLSs to a target's connections. Versions and ciphers are the same for all inbounds and outbounds,
// so they come from rules without a sectionName.
func (t *target) secure(policies []*matching.Policy) error {
	said, err := t.tlsRule(&matching.InboundPort{}, policies)
	if err != nil {
		return err
	}
	t.observed.tls, t.observed.said = said.handshakes, []*tlsRule{said}
	t.observed.problems = append(t.observed.problems, said.problems...)
	t.observed.problems = append(t.observed.problems, said.unsupported...)
	for i := range t.inbounds {
		in := &t.inbounds[i]
		said, err := t.tlsRule(in.port, policies)
		if err != nil {
			return err
		}
		t.observed.problems = append(t.observed.problems, said.problems...)
		t.observed.said = append(t.observed.said, said)
		in.permissive = said.permissive
		if in.permissive && in.serverFirst {
			in.permissive = false
			t.observed.problem(said.origin, "inbound "+in.section+
				" takes mutual TLS only: its application speaks first, and would speak to plaintext clients before they are judged")
		}
	}
	return nil
}

// tlsRule is the merged MeshTLS of an inbound. origin is the policy that contributed last. unsupported are the problems
// of its handshakes, problems all others. It is immutable.
type tlsRule struct {
	handshakes
	permissive            bool
	origin                string
	problems, unsupported []string
}

func (t *target) tlsRule(in *matching.InboundPort, policies []*matching.Policy) (*tlsRule, error) {
	key := matching.SelectedInbound(t.match, in, policies, resources.TypeMeshTLS)
	if key == "" {
		return &tlsRule{}, nil
	}
	return t.shared.tls.get(key, func() (*tlsRule, error) { return readTLSRule(t.match, in, policies), nil })
}

func readTLSRule(of *matching.Proxy, in *matching.InboundPort, policies []*matching.Policy) *tlsRule {
	out := &tlsRule{}
	rules := matching.InboundConfs(matching.InboundInput{Type: resources.TypeMeshTLS, Proxy: of, Inbound: in,
		Policies: policies})
	for i := range rules.Items {
		rule := &rules.Items[i]
		if rule.Match != nil {
			continue // apply and rollout status report that requests come too late
		}
		origin, conf := rule.Origins[len(rule.Origins)-1].KRI().String(), new(resources.TLSConf)
		if err := json.Unmarshal(rule.Conf, conf); err != nil {
			out.problems = append(out.problems, origin+": the conf does not match its type: "+err.Error())
			continue
		}
		out.origin, out.permissive = origin, conf.Mode != nil && *conf.Mode == resources.TLSPermissive
		out.oldest, out.newest = conf.Oldest(), conf.Newest()
		var err error
		if out.ciphers, err = conf.Ciphers(); err != nil {
			out.unsupported = append(out.unsupported, origin+": tlsCiphers: "+err.Error())
		}
		for _, reason := range conf.Unsupported() {
			out.unsupported = append(out.unsupported, origin+": "+reason)
		}
		out.id = strings.Join(append([]string{out.oldest, out.newest}, out.ciphers...), ",")
		break
	}
	return out
}

// judged returns an inbound and, if it accepts plaintext, its other side, which has its own filters.
func (in *inbound) judged() []inbound {
	if !in.permissive {
		return []inbound{*in}
	}
	bare := *in
	bare.plaintext = true
	return []inbound{*in, bare}
}

// filterList holds the filters of a TCP inbound's chain. forwarder is what ECDS serves of the last one. Proxies share it.
type filterList struct {
	filters   []*listenerv3.Filter
	forwarder *resource
}

// filtersKey is everything that the filters of an inbound depend on, apart from spans.
type filtersKey struct {
	section                      string
	http, plaintext, serverFirst bool
	own                          *inbound
	logged                       *inboundLogs
	limits                       *connectionLimits
}

func (in *inbound) filtersKey() filtersKey {
	return filtersKey{in.section, in.http(), in.plaintext, in.serverFirst, in.own, in.logged, in.limits}
}

func (in *inbound) tcpFilters(t *target) (*filterList, error) {
	return t.shared.filters.get(in.filtersKey(), func() (*filterList, error) { return newTCPFilters(in) })
}

// answersKey is everything that the handshake of an inbound depends on, but for the name of the identity.
type answersKey struct {
	http    bool
	tls     string
	secrets unnamedSecrets
}

// answers returns the field of a marshalled filter chain that says how a proxy answers the handshakes of an inbound's
// clients, for the name of its identity.
func (t *target) answers(http bool) (*stencil, error) {
	secrets, err := t.secrets.unnamed()
	if err != nil {
		return nil, err
	}
	return t.shared.answers.get(answersKey{http, t.observed.tls.id, secrets}, func() (*stencil, error) {
		of := *t
		of.secrets.identity = gap(secrets.length)
		field, err := of.answering(http)
		return newStencil(field, of.secrets.identity), err
	})
}

// answering marshals the field of a chain with the handshakes of clients.
func (t *target) answering(http bool) ([]byte, error) {
	var alpn []string
	if http {
		alpn = []string{"h2", "http/1.1"}
	}
	tls, err := pack(downstreamTLS(t, alpn))
	if err != nil {
		return nil, err
	}
	return marshalled(&listenerv3.FilterChain{TransportSocket: &corev3.TransportSocket{
		Name: "envoy.transport_sockets.tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: tls}}})
}

// chainKey is everything that a filter chain depends on, apart from spans and handshakes.
type chainKey struct {
	filters filtersKey
	mark    string
}

// chain returns the filter chain of an inbound. The plaintext chain is beside the TLS chain, which takes everything else and
// does not change: clients with TLS keep their connections when the mode changes.
func (in *inbound) chain(t *target, clients access) (chain, error) {
	out, key := chain{}, chainKey{filters: in.filtersKey()}
	if !in.http() {
		key.mark = clients.mark
	} else if by := t.spans(); by != nil {
		out.spans = by.field
	}
	var err error
	if out.chainParts, err = t.shared.chains.get(key, func() (*chainParts, error) { return in.chainParts(t, clients) }); err != nil {
		return out, err
	}
	if !in.plaintext {
		out.identity = t.secrets.identity
		out.handshakes, err = t.answers(in.http())
	}
	return out, err
}

// chainParts builds what proxies share of the filter chain of an inbound.
func (in *inbound) chainParts(t *target, clients access) (*chainParts, error) {
	all := &listenerv3.FilterChain{Name: in.chainName(), TransportSocketConnectTimeout: handshakeTime}
	if in.plaintext {
		all.FilterChainMatch = &listenerv3.FilterChainMatch{TransportProtocol: "raw_buffer"}
	}
	if in.http() {
		filters, manager, err := httpFilters(in)
		if err != nil {
			return nil, err
		}
		all.Filters = filters
		return newChainParts(all, manager)
	}
	list, err := in.tcpFilters(t)
	if err != nil {
		return nil, err
	}
	all.Filters, all.Metadata = list.filters, clients.metadata()
	return newChainParts(all, nil)
}
