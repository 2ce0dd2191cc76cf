package xds

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

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

// filterList holds the filters of an inbound's chain. forwarder is what ECDS serves of the last one in TCP. Proxies share
// it.
type filterList struct {
	filters   []*listenerv3.Filter
	forwarder *resource
}

// filtersKey is everything that they depend on.
type filtersKey struct {
	section                      string
	http, plaintext, serverFirst bool
	own                          *inbound
	logged                       *inboundLogs
	limits                       *connectionLimits
	by                           *provider
}

func (in *inbound) filters(t *target) (*filterList, error) {
	key := filtersKey{in.section, in.http(), in.plaintext, in.serverFirst, in.own, in.logged, in.limits, t.spans()}
	made, err := t.shared.filters.get(key, func() (*filterList, error) {
		if in.http() {
			return httpFilters(in, t)
		}
		return tcpFilters(in, t)
	})
	return made, err
}

// answersKey is everything that the handshake of an inbound depends on.
type answersKey struct {
	http    bool
	tls     string
	secrets secretNames
}

// answers are the field of a marshalled filter chain that says how a proxy answers handshakes. They keep what they were
// made with, and are immutable.
type answers struct {
	field []byte
	alike *stencil
}

// answers returns how the proxy answers the handshakes of an inbound's clients, and keeps that for the next listener.
func (t *target) answers(http bool) (*answers, error) {
	made, err := t.answersOnce(http)
	t.observed.kept = append(t.observed.kept, made)
	return made, err
}

// answersOnce is answers for a caller that keeps them itself.
func (t *target) answersOnce(http bool) (*answers, error) {
	return t.shared.answers.get(answersKey{http, t.observed.tls.id, t.secrets}, func() (*answers, error) {
		identity := t.secrets.identity
		if !utf8.ValidString(identity) {
			return nil, fmt.Errorf("%w: the name of a secret is not valid text: %q", ErrConfig, identity)
		}
		secrets := t.secrets
		secrets.identity = gap(identity)
		alike, err := t.shared.answerStencils.get(answersKey{http, t.observed.tls.id, secrets}, func() (*stencil, error) {
			of := *t
			of.secrets = secrets
			field, err := of.answering(http)
			return newStencil(field, len(identity)), err
		})
		if err != nil {
			return nil, err
		}
		return &answers{alike.with(identity), alike}, nil
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

// chainKey is everything that a filter chain depends on, apart from handshakes.
type chainKey struct {
	filters *filterList
	mark    string
}

// chain returns the filter chain of an inbound as a field of a marshalled listener, in parts. The plaintext chain is beside
// the TLS chain, which takes everything else and does not change: clients with TLS keep their connections when the mode
// changes.
func (in *inbound) chain(t *target, clients access) ([][]byte, error) {
	list, err := in.filters(t)
	if err != nil {
		return nil, err
	}
	key := chainKey{filters: list}
	if !in.http() {
		key.mark = clients.mark
	}
	parts, err := t.shared.chains.get(key, func() (*chainParts, error) { return in.chainParts(list, clients) })
	if err != nil {
		return nil, err
	}
	t.observed.kept = append(t.observed.kept, list, parts)
	chain := *parts
	if !in.plaintext {
		made, err := t.answers(in.http())
		if err != nil {
			return nil, err
		}
		chain.handshakes = made.field
	}
	return chain.field(), nil
}

func (in *inbound) chainParts(list *filterList, clients access) (*chainParts, error) {
	chain := &listenerv3.FilterChain{Name: in.chainName(), Filters: list.filters, TransportSocketConnectTimeout: handshakeTime}
	if !in.http() {
		chain.Metadata = clients.metadata()
	}
	if in.plaintext {
		chain.FilterChainMatch = &listenerv3.FilterChainMatch{TransportProtocol: "raw_buffer"}
	}
	return newChainParts(chain)
}
