package xds

import (
	"encoding/json"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// connectionLimits holds the settings of MeshTimeouts for an inbound's connections; nil, of all or of one, means the
// default limits. All but connect are in the listener, since only a connection manager or TCP proxy has these settings
// (docs/decisions/0050-where-observation-is-configured.md).
type connectionLimits struct {
	connect, idle, maxConnection, requestHeaders *time.Duration
}

// limitInbounds applies the connection limits of MeshTimeouts to inbounds. It ignores rules with matches, because a
// connection precedes its requests.
func (t *target) limitInbounds(policies []*matching.Policy) error {
	for i := range t.inbounds {
		in := &t.inbounds[i]
		key := matching.SelectedInbound(t.match, in.port, policies, resources.TypeMeshTimeout)
		if key == "" {
			continue
		}
		var err error
		if in.limits, err = t.shared.limits.get(key, func() (*connectionLimits, error) {
			return limitsOf(t.match, in.port, policies), nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// limitsOf reads the limits of an inbound.
func limitsOf(of *matching.Proxy, in *matching.InboundPort, policies []*matching.Policy) *connectionLimits {
	out := &connectionLimits{}
	rules := matching.InboundConfs(matching.InboundInput{Type: resources.TypeMeshTimeout, Proxy: of, Inbound: in,
		Policies: policies})
	for j := range rules.Items {
		var conf resources.TimeoutConf
		if rules.Items[j].Match != nil || json.Unmarshal(rules.Items[j].Conf, &conf) != nil {
			continue // the routes report a conf that does not decode
		}
		*out = connectionLimits{connect: optional(conf.ConnectionTimeout), idle: optional(conf.IdleTimeout)}
		if conf.HTTP != nil {
			out.maxConnection, out.requestHeaders = optional(conf.HTTP.MaxConnectionDuration),
				optional(conf.HTTP.RequestHeadersTimeout)
		}
		if d := out.maxConnection; d != nil && *d == 0 {
			out.maxConnection = nil // 0 is no limit, and Envoy would close at once
		}
	}
	return out
}

// breakInbounds applies the limits of MeshCircuitBreakers to inbounds, from rules without matches.
func (t *target) breakInbounds(policies []*matching.Policy) error {
	for i := range t.inbounds {
		in := &t.inbounds[i]
		key := matching.SelectedInbound(t.match, in.port, policies, resources.TypeMeshCircuitBreaker)
		if key == "" {
			continue
		}
		made, err := t.shared.breakers.get(key, func() (*inboundBreaker, error) {
			return breakerOf(t.match, in.port, policies), nil
		})
		if err != nil {
			return err
		}
		in.breaker = made
		for _, p := range made.problems {
			t.observed.problems = append(t.observed.problems, in.section+": "+p)
		}
	}
	return nil
}

// inboundBreaker limits the load on the application behind an inbound. Its zero value, and nil, are no limit.
type inboundBreaker struct {
	limits   *resources.ConnectionLimits
	problems []string
}

// connections returns the limits; nil for none.
func (b *inboundBreaker) connections() *resources.ConnectionLimits {
	if b == nil {
		return nil
	}
	return b.limits
}

// breakerOf reads the breaker of an inbound.
func breakerOf(of *matching.Proxy, in *matching.InboundPort, policies []*matching.Policy) *inboundBreaker {
	out := &inboundBreaker{}
	rules := matching.InboundConfs(matching.InboundInput{Type: resources.TypeMeshCircuitBreaker, Proxy: of, Inbound: in,
		Policies: policies})
	for j := range rules.Items {
		var conf resources.BreakerConf
		if rules.Items[j].Match != nil {
			continue
		}
		if err := json.Unmarshal(rules.Items[j].Conf, &conf); err != nil {
			out.problems = append(out.problems,
				"the conf of a MeshCircuitBreaker does not match its type: "+err.Error())
			continue
		}
		out.limits = conf.ConnectionLimits
	}
	return out
}

// connectTimeout returns how long a connection to the application may take.
func (l *connectionLimits) connectTimeout() time.Duration {
	if l == nil || l.connect == nil || *l.connect == 0 {
		return applicationConnectTimeout
	}
	return *l.connect
}

func (l *connectionLimits) onManager(m *hcmv3.HttpConnectionManager) {
	if l == nil {
		return
	}
	m.RequestHeadersTimeout = durationOf(l.requestHeaders)
	if l.idle != nil || l.maxConnection != nil {
		m.CommonHttpProtocolOptions = &corev3.HttpProtocolOptions{IdleTimeout: durationOf(l.idle),
			MaxConnectionDuration: durationOf(l.maxConnection)}
	}
}

func (l *connectionLimits) onTCP(p *tcpv3.TcpProxy) {
	if l != nil {
		p.IdleTimeout = durationOf(l.idle)
	}
}
