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

// connectionLimits holds what MeshTimeouts set for the connections of an inbound; nil means the default limits. All but
// connect are in the listener, since only a connection manager or TCP proxy has these settings
// (docs/decisions/0050-where-observation-is-configured.md).
type connectionLimits struct {
	connect, idle, maxConnection, requestHeaders *time.Duration
}

// limitInbounds applies the connection limits of MeshTimeouts to inbounds. It ignores rules with matches: requests come
// later.
func (t *target) limitInbounds(policies []*matching.Policy) {
	for i := range t.inbounds {
		in := &t.inbounds[i]
		rules := matching.InboundConfs(matching.InboundInput{Type: resources.TypeMeshTimeout, Proxy: t.match,
			Inbound: in.port, Policies: policies})
		for j := range rules.Items {
			var conf resources.TimeoutConf
			if rules.Items[j].Match != nil || json.Unmarshal(rules.Items[j].Conf, &conf) != nil {
				continue // the routes report what does not decode
			}
			in.limits = connectionLimits{connect: optional(conf.ConnectionTimeout), idle: optional(conf.IdleTimeout)}
			if conf.HTTP != nil {
				in.limits.maxConnection, in.limits.requestHeaders = optional(conf.HTTP.MaxConnectionDuration),
					optional(conf.HTTP.RequestHeadersTimeout)
			}
			if d := in.limits.maxConnection; d != nil && *d == 0 {
				in.limits.maxConnection = nil // 0 is no limit, and Envoy would close at once
			}
		}
	}
}

// breakInbounds applies the limits of MeshCircuitBreakers to inbounds, from rules without matches.
func (t *target) breakInbounds(policies []*matching.Policy) {
	for i := range t.inbounds {
		in := &t.inbounds[i]
		rules := matching.InboundConfs(matching.InboundInput{Type: resources.TypeMeshCircuitBreaker, Proxy: t.match,
			Inbound: in.port, Policies: policies})
		for j := range rules.Items {
			var conf resources.BreakerConf
			if rules.Items[j].Match != nil {
				continue
			}
			if err := json.Unmarshal(rules.Items[j].Conf, &conf); err != nil {
				t.observed.problems = append(t.observed.problems,
					in.section+": the conf of a MeshCircuitBreaker does not have the form of its type: "+err.Error())
				continue
			}
			in.breaker = conf.ConnectionLimits
		}
	}
}

// connectTimeout returns how long a connection to the application may take.
func (l *connectionLimits) connectTimeout() time.Duration {
	if l.connect == nil || *l.connect == 0 {
		return applicationConnectTimeout
	}
	return *l.connect
}

func (l *connectionLimits) onManager(m *hcmv3.HttpConnectionManager) {
	m.RequestHeadersTimeout = durationOf(l.requestHeaders)
	if l.idle != nil || l.maxConnection != nil {
		m.CommonHttpProtocolOptions = &corev3.HttpProtocolOptions{IdleTimeout: durationOf(l.idle),
			MaxConnectionDuration: durationOf(l.maxConnection)}
	}
}

func (l *connectionLimits) onTCP(p *tcpv3.TcpProxy) { p.IdleTimeout = durationOf(l.idle) }
