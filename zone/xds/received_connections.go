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

// connectionLimits are what MeshTimeouts say of the connections of an inbound; nil is no limit but the usual ones. All but connect
// are in the listener, since only a connection manager or TCP proxy knows them (docs/decisions/0050-where-observation-is-configured.md).
type connectionLimits struct {
	connect, idle, maxConnection, requestHeaders *time.Duration
}

// limitInbounds gives inbounds the limits that MeshTimeouts put on connections. Rules with matches have none: requests come later.
func (t *target) limitInbounds(policies []*matching.Policy) {
	for i := range t.inbounds {
		in := &t.inbounds[i]
		rules := matching.InboundConfs(matching.InboundInput{Type: resources.TypeMeshTimeout, Proxy: t.match, Inbound: in.port, Policies: policies})
		for j := range rules.Items {
			var conf resources.TimeoutConf
			if rules.Items[j].Match != nil || json.Unmarshal(rules.Items[j].Conf, &conf) != nil {
				continue // the routes tell what does not decode
			}
			in.limits = connectionLimits{connect: optional(conf.ConnectionTimeout), idle: optional(conf.IdleTimeout)}
			if conf.HTTP != nil {
				in.limits.maxConnection, in.limits.requestHeaders = optional(conf.HTTP.MaxConnectionDuration), optional(conf.HTTP.RequestHeadersTimeout)
			}
			if d := in.limits.maxConnection; d != nil && *d == 0 {
				in.limits.maxConnection = nil // 0 is no limit, and Envoy would close at once
			}
		}
	}
}

// breakInbounds gives inbounds the limits of MeshCircuitBreakers, of rules without matches.
func (t *target) breakInbounds(policies []*matching.Policy) {
	for i := range t.inbounds {
		in := &t.inbounds[i]
		rules := matching.InboundConfs(matching.InboundInput{Type: resources.TypeMeshCircuitBreaker, Proxy: t.match, Inbound: in.port, Policies: policies})
		for j := range rules.Items {
			var conf resources.BreakerConf
			if rules.Items[j].Match != nil {
				continue
			}
			if err := json.Unmarshal(rules.Items[j].Conf, &conf); err != nil {
				t.observed.problems = append(t.observed.problems, in.section+": the conf of a MeshCircuitBreaker has not the form of its type: "+err.Error())
				continue
			}
			in.breaker = conf.ConnectionLimits
		}
	}
}

// connectTimeout is how long a connection to the application may take.
func (l *connectionLimits) connectTimeout() time.Duration {
	if l.connect == nil || *l.connect == 0 {
		return applicationConnectTimeout
	}
	return *l.connect
}

func (l *connectionLimits) onManager(m *hcmv3.HttpConnectionManager) {
	m.RequestHeadersTimeout = durationOf(l.requestHeaders)
	if l.idle != nil || l.maxConnection != nil {
		m.CommonHttpProtocolOptions = &corev3.HttpProtocolOptions{IdleTimeout: durationOf(l.idle), MaxConnectionDuration: durationOf(l.maxConnection)}
	}
}

func (l *connectionLimits) onTCP(p *tcpv3.TcpProxy) { p.IdleTimeout = durationOf(l.idle) }
