package zone_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	logsv1 "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metricsv1 "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracesv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	otlogsv1 "go.opentelemetry.io/proto/otlp/logs/v1"
	ottracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// collector takes spans and logs over OTLP, as an OpenTelemetry collector does.
type collector struct {
	tracesv1.UnimplementedTraceServiceServer
	logsv1.UnimplementedLogsServiceServer
	address string

	mu    sync.Mutex
	spans []*ottracev1.ResourceSpans // guarded by mu
	// metrics maps each name to the service that sent it.
	metrics map[string]string        // guarded by mu
	logs    []*otlogsv1.ResourceLogs // guarded by mu
}

// logsOf serves the logs of a collector, whose method has the name of that for spans.
type logsOf struct {
	logsv1.UnimplementedLogsServiceServer
	*collector
}

// metricsOf serves the metrics of a collector, whose method has the name of that for spans.
type metricsOf struct {
	metricsv1.UnimplementedMetricsServiceServer
	*collector
}

// Export takes metrics.
func (m metricsOf) Export(_ context.Context,
	r *metricsv1.ExportMetricsServiceRequest) (*metricsv1.ExportMetricsServiceResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, from := range r.GetResourceMetrics() {
		service := ""
		for _, a := range from.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				service = a.GetValue().GetStringValue()
			}
		}
		for _, scope := range from.GetScopeMetrics() {
			for _, one := range scope.GetMetrics() {
				m.metrics[one.GetName()] = service
			}
		}
	}
	return &metricsv1.ExportMetricsServiceResponse{}, nil
}

// startCollector runs a collector until the test ends.
func startCollector(t *testing.T) *collector {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	c := &collector{address: listener.Addr().String(), metrics: map[string]string{}}
	server := grpc.NewServer()
	tracesv1.RegisterTraceServiceServer(server, c)
	logsv1.RegisterLogsServiceServer(server, logsOf{collector: c})
	metricsv1.RegisterMetricsServiceServer(server, metricsOf{collector: c})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return c
}

// Export takes spans.
func (c *collector) Export(_ context.Context,
	r *tracesv1.ExportTraceServiceRequest) (*tracesv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans = append(c.spans, r.GetResourceSpans()...)
	return &tracesv1.ExportTraceServiceResponse{}, nil
}

// Export takes logs.
func (l logsOf) Export(_ context.Context, r *logsv1.ExportLogsServiceRequest) (*logsv1.ExportLogsServiceResponse,
	error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.logs = append(l.logs, r.GetResourceLogs()...)
	return &logsv1.ExportLogsServiceResponse{}, nil
}

// span is what a test wants of one: its service, the trace it belongs to, and its attributes.
type span struct {
	service, trace string
	attributes     map[string]string
}

func (c *collector) taken() []span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []span
	for _, r := range c.spans {
		service := attributesOf(r.GetResource().GetAttributes())["service.name"]
		for _, scope := range r.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				out = append(out, span{service, string(s.GetTraceId()), attributesOf(s.GetAttributes())})
			}
		}
	}
	return out
}

// lines returns the bodies of the logs.
func (c *collector) lines() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, r := range c.logs {
		for _, scope := range r.GetScopeLogs() {
			for _, l := range scope.GetLogRecords() {
				out = append(out, l.GetBody().GetStringValue())
			}
		}
	}
	return out
}

func attributesOf(list []*commonv1.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range list {
		out[kv.GetKey()] = kv.GetValue().GetStringValue()
	}
	return out
}

// zipkinReceiver takes spans in Zipkin's format, until the test ends.
type zipkinReceiver struct {
	*httptest.Server
	mu       sync.Mutex
	spans    []map[string]any // guarded by mu
	requests []http.Header    // guarded by mu
	bodies   int              // guarded by mu
}

func startZipkin(t *testing.T) *zipkinReceiver {
	t.Helper()
	z := &zipkinReceiver{}
	z.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var spans []map[string]any
		z.mu.Lock()
		defer z.mu.Unlock()
		if r.Method != http.MethodPost || r.URL.Path != "/api/v2/spans" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		z.bodies += len(body)
		z.requests = append(z.requests, r.Header)
		if json.Unmarshal(body, &spans) == nil {
			z.spans = append(z.spans, spans...)
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(z.Close)
	return z
}

func (z *zipkinReceiver) taken() []map[string]any {
	z.mu.Lock()
	defer z.mu.Unlock()
	return append([]map[string]any(nil), z.spans...)
}

// binary reports whether a request with spans in protobuf came.
func (z *zipkinReceiver) binary() bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, h := range z.requests {
		if h.Get("Content-Type") == "application/x-protobuf" && z.bodies > 0 {
			return true
		}
	}
	return false
}
