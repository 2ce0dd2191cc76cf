package xds

import (
	"encoding/json"
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/zone/matching"
)

const (
	// AdminCluster is the cluster in proxies' bootstrap that leads to their own admin interface.
	AdminCluster = "causeway_admin"
	// AdminKey is the key of node.metadata by which a proxy announces that cluster and the port of the interface.
	AdminKey = "causeway.io/admin"
	// metricsListener serves a proxy's metrics. It is a listener of its own, so that it replaces no other.
	metricsListener = "causeway_metrics"
)

// metricRule is a merged MeshMetric. origin is the policy that contributed last. Proxies share it.
type metricRule struct {
	resources.MetricConf
	origin, problem string
}

// metricRule returns the merged conf of the selected MeshMetrics.
func (s *shared) metricRule(selected string, of *matching.Proxy, policies []*matching.Policy) (*metricRule, error) {
	return s.metricRules.get(selected, func() (*metricRule, error) {
		rule, out := matching.ProxyConf(resources.TypeMeshMetric, of, policies), &metricRule{}
		if len(rule.Conf) == 0 {
			return out, nil
		}
		out.origin = rule.Origins[len(rule.Origins)-1].KRI().String()
		if err := json.Unmarshal(rule.Conf, &out.MetricConf); err != nil {
			return &metricRule{origin: out.origin, problem: "the conf does not match its type: " + err.Error()}, nil
		}
		return out, nil
	})
}

// measureBy applies a merged MeshMetric.
func (t *target) measureBy(rule *metricRule, err error) error {
	if err != nil {
		return err
	}
	t.observed.kept = append(t.observed.kept, rule)
	origin, conf := rule.origin, &rule.MetricConf
	if rule.problem != "" {
		t.observed.problem(origin, rule.problem)
	}
	shown, pushed := false, false
	for i := range conf.Backends {
		b, err := &conf.Backends[i], error(nil)
		switch {
		case b.Prometheus != nil && !shown:
			shown, err = true, t.showMetrics(origin, b.Prometheus, conf)
		case b.OpenTelemetry != nil && !pushed:
			pushed, err = true, t.pushMetrics(origin, b.OpenTelemetry, conf)
		case b.Prometheus != nil || b.OpenTelemetry != nil:
			t.observed.problem(origin, fmt.Sprintf("backends[%d]: a proxy supports one of type %s: this one is omitted", i, b.Type))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// showMetrics makes the proxy expose its metrics to Prometheus.
func (t *target) showMetrics(origin string, backend *resources.PrometheusBackend, conf *resources.MetricConf) error {
	spec, _ := resources.SpecAs[meshpb.Dataplane](t.dataplane)
	listen := endpoint{spec.GetNetworking().GetAddress(), resources.DefaultMetricsPort}
	if backend.Port != nil {
		listen.port = *backend.Port
	}
	admin, err := t.adminAt()
	taken := err == nil && admin.same(listen) || t.listensOn(listen)
	field, err := backend.Check()
	switch {
	case err != nil:
		t.observed.problem(origin, "prometheus."+field+": "+err.Error())
		return nil
	case t.ofPod() && injection.IsProxyPort(listen.port):
		t.observed.problem(origin, fmt.Sprintf("prometheus.port: %d is the proxy's own in every pod: choose another", listen.port))
		return nil
	case !listen.dialable() || taken:
		t.observed.problem(origin, "prometheus.port: "+listen.String()+" is not usable, or an inbound or a gateway listens there")
		return nil
	case !t.measured.admin:
		t.observed.problem(origin, "the proxy cannot reach its own admin interface: recreate its bootstrap with an --admin-address that has a port")
		return nil
	}
	selected, problems := selectMetrics(conf.Sidecar)
	for _, p := range problems {
		t.observed.problem(origin, p)
	}
	apps, err := t.askApplications(origin, conf.Applications)
	if err != nil {
		return err
	}
	changes, err := metricsFilter(apps, selected)
	if err != nil {
		return err
	}
	t.observed.metrics, err = t.newMetrics(listen, backend, selected.path(), changes)
	return err
}

// ofPod reports whether the zone made the Dataplane from a pod.
func (t *target) ofPod() bool {
	return t.dataplane.Labels[resources.LabelManagedBy] == resources.ManagedByDiscovery
}

// newMetrics builds the listener that serves the proxy's metrics and nothing else of its admin interface: the content
// of the path from, modified by changes, which may be nil.
func (t *target) newMetrics(listen endpoint, backend *resources.PrometheusBackend, from string,
	changes *hcmv3.HttpFilter) (*resource, error) {
	key := metricsKey{path: resources.DefaultMetricsPath, from: from}
	if backend.Path != nil {
		key.path = *backend.Path
	}
	if changes != nil {
		key.changes = string(changes.GetTypedConfig().GetValue())
	}
	shown, err := t.shared.metrics.get(key, func() (*shownMetrics, error) { return key.shown(changes) })
	if err != nil {
		return nil, err
	}
	t.observed.kept = append(t.observed.kept, shown)
	made := chain{chainParts: shown.chain}
	if backend.TLS != nil && backend.TLS.Mode == resources.MetricsInTheMesh {
		made.identity = t.secrets.identity
		if made.handshakes, err = t.answers(true); err != nil {
			return nil, err
		}
		t.observed.kept = append(t.observed.kept, made.handshakes)
	}
	head, err := marshalled(&listenerv3.Listener{Name: metricsListener, Address: listen.proto()})
	if err != nil {
		return nil, err
	}
	around := &frame{string(head), shown.tail}
	return around.listener(metricsListener, []chain{made}), nil
}

// metricsKey is everything that metricsListener depends on, apart from its address and handshakes. changes identifies the
// filter.
type metricsKey struct{ path, from, changes string }

// shownMetrics is that part of it. Proxies share it.
type shownMetrics struct {
	chain *chainParts
	tail  string
}

func (k *metricsKey) shown(changes *hcmv3.HttpFilter) (*shownMetrics, error) {
	manager, err := k.manager(changes)
	if err != nil {
		return nil, err
	}
	chain, err := newChainParts(&listenerv3.FilterChain{Name: metricsListener}, manager)
	if err != nil {
		return nil, err
	}
	rest := &listenerv3.Listener{StatPrefix: metricsListener, TrafficDirection: corev3.TrafficDirection_INBOUND}
	if changes != nil {
		rest.PerConnectionBufferLimitBytes = wrapperspb.UInt32(maxMetrics)
	}
	tail, err := marshalled(rest)
	return &shownMetrics{chain, string(tail)}, err
}

func (k *metricsKey) manager(changes *hcmv3.HttpFilter) (*hcmv3.HttpConnectionManager, error) {
	same, err := theUnvarying()
	if err != nil {
		return nil, err
	}
	filters := []*hcmv3.HttpFilter{{Name: "envoy.filters.http.router",
		ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: same.router}}}
	if changes != nil {
		filters = append([]*hcmv3.HttpFilter{changes}, filters...)
	}
	return &hcmv3.HttpConnectionManager{
		StatPrefix:    metricsListener,
		NormalizePath: wrapperspb.Bool(true),
		HttpFilters:   filters,
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			Name: metricsListener, ValidateClusters: wrapperspb.Bool(false),
			VirtualHosts: []*routev3.VirtualHost{{Name: metricsListener, Domains: []string{"*"}, Routes: []*routev3.Route{{
				Match: getOf(k.path),
				Action: &routev3.Route_Route{Route: &routev3.RouteAction{
					ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: AdminCluster},
					RegexRewrite: &matcherv3.RegexMatchAndSubstitute{
						Pattern: &matcherv3.RegexMatcher{Regex: "^.*$"}, Substitution: strings.ReplaceAll(k.from, `\`, `\\`),
					},
				}},
			}}}},
		}},
	}, nil
}

// getOf matches a GET of one path. Changes to a proxy need POST.
func getOf(path string) *routev3.RouteMatch {
	return &routev3.RouteMatch{
		PathSpecifier: &routev3.RouteMatch_Path{Path: path},
		Headers: []*routev3.HeaderMatcher{{Name: ":method", HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{
			StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "GET"}},
		}}},
	}
}
