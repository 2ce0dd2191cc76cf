package xds

import (
	"fmt"
	"time"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/zone/matching"
)

// listens holds the parts of an outbound's service and policies that its listener depends on.
type listens struct {
	name, backend, service string
	listen                 endpoint
	redirected, http       bool
	// idle is for connections without requests; headers limits the time to receive a request's headers.
	idle, headers durationOrNone
	// attempts is the number of connection attempts; 0 for Envoy's default.
	attempts uint32
	// shares identifies where connections go.
	shares string
}

// durationOrNone is a duration, or none.
type durationOrNone struct {
	time.Duration
	is bool
}

// prepare sets what the outbound's listener depends on.
func (s *sender) prepare(d *destined) {
	limits := s.timeoutsOf(s.timeouts.For(d.key()))
	d.listens = listens{name: d.name, backend: d.backend.name, service: d.backend.service.Resource.DisplayName(),
		listen: d.listen, redirected: d.redirected, http: d.http()}
	if !d.listens.http {
		d.listens.idle = durationOrNone{limits.idle, true}
		d.listens.attempts = s.connectAttempts(s.retries.For(d.key())).GetValue()
		for _, w := range d.tcpRoutes {
			d.listens.shares += fmt.Sprint(w.name, "=", w.weight, " ")
		}
	} else if limits.requestHeaders != nil {
		d.listens.headers = durationOrNone{*limits.requestHeaders, true}
	}
}

// listenedKey is everything that the listener of an outbound depends on.
type listenedKey struct {
	listens
	// logs is the rule for its logs, and from holds the proxy's fields in them; nil for none.
	logs *matching.ResourceRule
	from logSource
	// admin is the port of the proxy's admin interface, to which no log goes; 0 without logs.
	admin uint32
	// by is the provider of its spans; nil for none.
	by *provider
}

// listened is the listener of an outbound with its logs. It is immutable.
type listened struct {
	listener *resource
	// forwarder is what ECDS serves of its filter; nil for HTTP.
	forwarder *resource
	*outboundLogs
}

// listenTo adds the listeners of a plan's outbounds. A pod behind a headless Service has the addresses of a service. Its own
// proxy has no listener there for what goes out: others' connections to the pod would reach it, and go on in the pod's name.
// Nobody else reaches the address of the service's names.
func (s *sender) listenTo(p *plan, out *sending) error {
	t := s.target
	var logs *matching.ToRules
	if logs = p.logs; logs == nil {
		var err error
		if out.logs, err = s.logRules(); err != nil {
			return err
		}
		logs = &out.logs.ToRules
	}
	for _, d := range p.found {
		if d.redirected && (t.receivesAt(d.listen) || t.receivesFor(d)) {
			continue
		}
		key := listenedKey{listens: d.listens}
		if rule := logs.For(d.key()); rule != nil && len(rule.Conf) > 0 {
			key.logs, key.admin = rule, t.measured.adminPort
			if out.logs == nil || !out.logs.same[rule] {
				key.from = t.logSource()
			}
		}
		if d.listens.http {
			key.by = t.spans()
		}
		l, err := openable(&t.shared.outbounds, key, t.logFiles, func(files *logFiles) (*listened, error) {
			return listen(&key, d.tcpRoutes, t.outboundLogs(&key, files))
		})
		if err != nil {
			return fmt.Errorf("%s: %w", d.field, err)
		}
		out.listened = append(out.listened, l)
		out.sets[kindListener] = append(out.sets[kindListener], l.listener)
		if l.forwarder != nil {
			out.sets[kindExtension] = append(out.sets[kindExtension], l.forwarder)
		}
		for _, c := range l.collectors {
			if !named(out.sets[kindCluster], c.name) {
				out.sets[kindCluster] = append(out.sets[kindCluster], c)
			}
		}
		out.problems = append(out.problems, l.problems...)
	}
	if !out.named || !s.target.answersNames() || s.target.dns.cluster {
		return nil
	}
	names, err := s.namesListener(p)
	out.sets[kindListener] = append(out.sets[kindListener], names)
	return err
}

// listen builds the listener for the application's traffic to a service. HTTP routes, and the forwarder of TCP, are
// resources of their own, so policies do not replace the listener. The exceptions are what only a connection manager has:
// the time limit for request headers, logs, and the provider of spans.
func listen(k *listenedKey, shares []weighted, logged *outboundLogs) (*listened, error) {
	made := &listened{outboundLogs: logged}
	last, err := made.last(k, logged.logs, shares)
	if err != nil {
		return nil, err
	}
	out := &listenerv3.Listener{
		Name:             k.name,
		StatPrefix:       k.name,
		Address:          k.listen.proto(),
		TrafficDirection: corev3.TrafficDirection_OUTBOUND,
		FilterChains:     []*listenerv3.FilterChain{{Name: k.name, Filters: []*listenerv3.Filter{last}}},
	}
	if k.redirected {
		out.BindToPort = wrapperspb.Bool(false)
	}
	made.listener, err = newResource(kindListener, k.name, out)
	return made, err
}

// last returns the one filter of the listener.
func (l *listened) last(k *listenedKey, logs []*accesslogv3.AccessLog, shares []weighted) (*listenerv3.Filter, error) {
	if !k.http {
		bare := listenedKey{listens: listens{name: k.name, backend: k.backend, idle: durationOrNone{defaultIdleTimeout, true}}}
		made, err := newForwarder(k.name, k.tcpProxy(logs, shares), bare.tcpProxy(nil, nil))
		if err != nil {
			return nil, err
		}
		l.forwarder = made.filter
		return made.inChain, nil
	}
	manager, err := k.manager(logs)
	if err != nil {
		return nil, err
	}
	packed, err := pack(manager)
	return &listenerv3.Filter{Name: managerFilter,
		ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed}}, err
}

func (k *listenedKey) manager(logs []*accesslogv3.AccessLog) (*hcmv3.HttpConnectionManager, error) {
	same, err := theUnvarying()
	if err != nil {
		return nil, err
	}
	out := &hcmv3.HttpConnectionManager{
		AccessLog:                  logs,
		StatPrefix:                 k.name,
		CodecType:                  hcmv3.HttpConnectionManager_AUTO,
		ServerHeaderTransformation: hcmv3.HttpConnectionManager_PASS_THROUGH,
		StreamIdleTimeout:          durationpb.New(defaultStreamIdleTimeout),
		HttpFilters: []*hcmv3.HttpFilter{
			{Name: "envoy.filters.http.router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: same.router}},
		},
		UpgradeConfigs: []*hcmv3.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: overADS(), RouteConfigName: k.name}},
	}
	if k.headers.is {
		out.RequestHeadersTimeout = durationpb.New(k.headers.Duration)
	}
	if k.by != nil {
		out.Tracing = k.by.manager
	}
	return out, nil
}

func (k *listenedKey) tcpProxy(logs []*accesslogv3.AccessLog, shares []weighted) *tcpv3.TcpProxy {
	out := &tcpv3.TcpProxy{
		AccessLog:  logs,
		StatPrefix: k.name, IdleTimeout: durationpb.New(k.idle.Duration),
		ClusterSpecifier: &tcpv3.TcpProxy_Cluster{Cluster: k.backend},
	}
	if k.attempts > 0 {
		out.MaxConnectAttempts = wrapperspb.UInt32(k.attempts)
	}
	sendTo(out, shares)
	return out
}

// sendTo sets the shares of a listener's connections; without any, it changes nothing.
func sendTo(out *tcpv3.TcpProxy, shares []weighted) {
	var clusters []*tcpv3.TcpProxy_WeightedCluster_ClusterWeight
	for _, w := range shares {
		if w.weight > 0 {
			clusters = append(clusters, &tcpv3.TcpProxy_WeightedCluster_ClusterWeight{
				Name: w.name, Weight: max(w.weight>>tooHeavy(shares), 1),
			})
		}
	}
	switch {
	case len(clusters) == 1:
		out.ClusterSpecifier = &tcpv3.TcpProxy_Cluster{Cluster: clusters[0].Name}
	case len(clusters) > 1:
		out.ClusterSpecifier = &tcpv3.TcpProxy_WeightedClusters{WeightedClusters: &tcpv3.TcpProxy_WeightedCluster{Clusters: clusters}}
	case len(shares) > 0:
		out.ClusterSpecifier = &tcpv3.TcpProxy_Cluster{Cluster: lost}
	}
}
