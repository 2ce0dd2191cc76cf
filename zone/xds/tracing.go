package xds

import (
	"cmp"
	"encoding/json"
	"math"
	"net/url"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tracev3 "github.com/envoyproxy/go-control-plane/envoy/config/trace/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tagsv3 "github.com/envoyproxy/go-control-plane/envoy/type/tracing/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// traceCluster is the cluster of the collector of a proxy's spans.
const traceCluster = "causeway_trace"

// tracing is the effect of a MeshTrace on a proxy. The provider is in the listeners of HTTP traffic, since only a
// connection manager has that setting. Sampling and tags are in the routes, and the collector's address is in its
// cluster. So only a policy that is added, removed, or changes the span format replaces those listeners.
type tracing struct {
	by   *provider
	conf *traceConf
}

// traceConf is a conf of a MeshTrace. Proxies share it.
type traceConf struct {
	resources.TraceConf
	// backend identifies its first backend.
	backend string
	route   *routev3.Tracing
	// marshalled is route as a field of a route.
	marshalled []byte
	problem    string
}

// provider sends the spans of a workload to a backend. The workload's proxies share it.
type provider struct {
	manager *hcmv3.HttpConnectionManager_Tracing
	// field is manager as the field of a marshalled connection manager.
	field   string
	cluster *resource
	problem string
}

type providerKey struct{ backend, service string }

// traceBy applies a merged MeshTrace. A conf without a backend traces nothing.
func (t *target) traceBy(rule *matching.ProxyRule) error {
	if len(rule.Conf) == 0 {
		return nil
	}
	origin := rule.Origins[len(rule.Origins)-1].KRI().String()
	conf, err := t.shared.traces.get(string(rule.Conf), func() (*traceConf, error) { return readTrace(rule.Conf) })
	if err != nil {
		return err
	}
	if conf.problem != "" {
		t.observed.problem(origin, conf.problem)
	}
	if conf.problem != "" || len(conf.Backends) == 0 {
		return nil
	}
	if host, port, err := conf.Backends[0].Collector(); err == nil {
		near := t.nearby()
		if err := near.refuses(host, port); err != nil {
			t.observed.problem(origin, "backends[0]: "+err.Error())
			return nil
		}
	}
	service := workloadOf(t.dataplane)
	by, err := t.shared.providers.get(providerKey{conf.backend, service}, func() (*provider, error) {
		return providerTo(&conf.Backends[0], service), nil
	})
	if err != nil {
		return err
	}
	if by.problem != "" {
		t.observed.problem(origin, by.problem)
	}
	if by.manager != nil {
		t.observed.collectors = append(t.observed.collectors, by.cluster)
		t.observed.trace = &tracing{by: by, conf: conf}
	}
	return nil
}

// readTrace reads a conf.
func readTrace(raw json.RawMessage) (*traceConf, error) {
	out := &traceConf{}
	if err := json.Unmarshal(raw, &out.TraceConf); err != nil {
		return &traceConf{problem: "the conf does not match its type: " + err.Error()}, nil
	}
	out.route = routeTracing(&out.TraceConf)
	var err error
	if out.marshalled, err = marshalTracing(out.route); err != nil {
		return &traceConf{problem: "proxies refuse it: " + err.Error()}, nil
	}
	if len(out.Backends) == 0 {
		return out, nil
	}
	text, err := json.Marshal(&out.Backends[0])
	out.backend = string(text)
	return out, err
}

// providerTo builds the provider of a backend. It is empty for a backend that this version does not support: apply and
// rollout status report that.
func providerTo(b *resources.TraceBackend, service string) *provider {
	to, cluster, err := newProvider(b, service)
	if err != nil {
		return &provider{problem: err.Error()}
	}
	if to == nil {
		return &provider{}
	}
	never := &typev3.Percent{}
	out := &provider{cluster: cluster,
		// The shares apply to requests without a route: none.
		manager: &hcmv3.HttpConnectionManager_Tracing{Provider: to, ClientSampling: never, RandomSampling: never,
			OverallSampling: never},
	}
	field, err := proto.MarshalOptions{Deterministic: true}.Marshal(&hcmv3.HttpConnectionManager{Tracing: out.manager})
	if err == nil {
		err = out.manager.Validate()
	}
	if err != nil {
		return &provider{problem: "proxies refuse it: " + err.Error()}
	}
	out.field = string(field)
	return out
}

func (o *observed) problem(origin, text string) { o.problems = append(o.problems, origin+": "+text) }

// workloadOf returns the service name in spans: all proxies of a workload share it.
func workloadOf(dp *resources.Resource) string {
	return cmp.Or(dp.Labels[resources.LabelWorkload], dp.DisplayName())
}

// newProvider builds the provider of spans and the cluster that leads to it; nil for a backend of no known type.
func newProvider(b *resources.TraceBackend, service string) (*tracev3.Tracing_Http, *resource, error) {
	switch {
	case b.Zipkin != nil:
		return zipkinProvider(b.Zipkin)
	case b.Datadog != nil:
		return datadogProvider(b.Datadog, service)
	case b.OpenTelemetry != nil:
		host, port, err := resources.ParseCollectorEndpoint(b.OpenTelemetry.Endpoint)
		if err != nil {
			return nil, nil, err
		}
		cluster, err := newCollector(traceCluster, host, port, true)
		if err != nil {
			return nil, nil, err
		}
		config, err := pack(&tracev3.OpenTelemetryConfig{GrpcService: grpcTo(traceCluster), ServiceName: service})
		return &tracev3.Tracing_Http{Name: "envoy.tracers.opentelemetry",
			ConfigType: &tracev3.Tracing_Http_TypedConfig{TypedConfig: config}}, cluster, err
	}
	return nil, nil, nil
}

// traceCollector returns the cluster of a collector with a URL, and the URL.
func traceCollector(address string) (*url.URL, *resource, error) {
	u, err := resources.ParseCollectorURL(address)
	if err != nil {
		return nil, nil, err
	}
	host, port, err := resources.CollectorAddress(u)
	if err != nil {
		return nil, nil, err
	}
	cluster, err := newCollector(traceCluster, host, port, false)
	return u, cluster, err
}

// datadogProvider returns the provider for Datadog's agent.
func datadogProvider(b *resources.DatadogBackend, service string) (*tracev3.Tracing_Http, *resource, error) {
	u, cluster, err := traceCollector(b.URL)
	if err != nil {
		return nil, nil, err
	}
	config, err := pack(&tracev3.DatadogConfig{CollectorCluster: traceCluster, ServiceName: service,
		CollectorHostname: u.Host})
	return &tracev3.Tracing_Http{Name: "envoy.tracers.datadog",
		ConfigType: &tracev3.Tracing_Http_TypedConfig{TypedConfig: config}}, cluster, err
}

func zipkinProvider(b *resources.ZipkinBackend) (*tracev3.Tracing_Http, *resource, error) {
	u, cluster, err := traceCollector(b.URL)
	if err != nil {
		return nil, nil, err
	}
	config := &tracev3.ZipkinConfig{
		CollectorCluster: traceCluster, CollectorEndpoint: cmp.Or(u.EscapedPath(), "/"), CollectorHostname: u.Host,
		CollectorEndpointVersion: tracev3.ZipkinConfig_HTTP_JSON, SharedSpanContext: wrapperspb.Bool(true),
	}
	if b.APIVersion == "httpProto" {
		config.CollectorEndpointVersion = tracev3.ZipkinConfig_HTTP_PROTO
	}
	if b.TraceID128Bit != nil {
		config.TraceId_128Bit = *b.TraceID128Bit
	}
	if b.SharedSpanContext != nil {
		config.SharedSpanContext = wrapperspb.Bool(*b.SharedSpanContext)
	}
	packed, err := pack(config)
	return &tracev3.Tracing_Http{Name: "envoy.tracers.zipkin",
		ConfigType: &tracev3.Tracing_Http_TypedConfig{TypedConfig: packed}}, cluster, err
}

// routeTracing returns the sampling and tags of routes.
func routeTracing(conf *resources.TraceConf) *routev3.Tracing {
	sampling := resources.TraceSampling{}
	if conf.Sampling != nil {
		sampling = *conf.Sampling
	}
	out := &routev3.Tracing{ClientSampling: shareOf(sampling.Client), RandomSampling: shareOf(sampling.Random),
		OverallSampling: shareOf(sampling.Overall)}
	for _, tag := range conf.Tags {
		custom := &tagsv3.CustomTag{Tag: tag.Name}
		switch {
		case tag.Name == "":
			continue
		case tag.Literal != nil && *tag.Literal != "":
			custom.Type = &tagsv3.CustomTag_Literal_{Literal: &tagsv3.CustomTag_Literal{Value: *tag.Literal}}
		case tag.Header != nil && tag.Header.Name != "":
			custom.Type = &tagsv3.CustomTag_RequestHeader{RequestHeader: &tagsv3.CustomTag_Header{Name: tag.Header.Name,
				DefaultValue: tag.Header.Default}}
		default:
			continue
		}
		out.CustomTags = append(out.CustomTags, custom)
	}
	return out
}

// shareOf returns a share in percent, to four decimals; 100 % if the conf has none.
func shareOf(raw json.RawMessage) *typev3.FractionalPercent {
	share := 100.0
	if parsed, err := resources.ParsePercentage(raw); len(raw) > 0 && err == nil {
		share = parsed
	}
	return &typev3.FractionalPercent{Numerator: uint32(math.Round(share * 1e4)),
		Denominator: typev3.FractionalPercent_MILLION}
}

// spans returns the provider of the proxy's spans; nil for none.
func (t *target) spans() *provider {
	if t.observed.trace == nil {
		return nil
	}
	return t.observed.trace.by
}

// onManager adds the span provider to the connection manager of HTTP traffic; nothing without a MeshTrace.
func (t *tracing) onManager(m *hcmv3.HttpConnectionManager) {
	if t != nil {
		m.Tracing = t.by.manager
	}
}

// onRoutes adds sampling and tags to routes.
func (t *tracing) onRoutes(routes []*routev3.Route) {
	for _, r := range routes {
		if t != nil {
			r.Tracing = t.conf.route
		}
	}
}
