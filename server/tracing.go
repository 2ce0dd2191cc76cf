package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// tracingDrainTimeout bounds how long the last spans may take at the end.
const tracingDrainTimeout = 3 * time.Second

// Tracing sends spans to a collector by OTLP. The zero value traces nothing.
type Tracing struct {
	// Tracer is nil if tracing is off.
	Tracer   trace.Tracer
	provider *sdktrace.TracerProvider
}

// StartTracing follows OpenTelemetry's environment variables. Tracing is off, and costs nothing, unless one of
// OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT and OTEL_TRACES_EXPORTER=otlp is set;
// OTEL_SDK_DISABLED=true and OTEL_TRACES_EXPORTER=none keep it off. The SDK reads the other OTEL_* variables (protocol,
// headers, sampler, attributes, batches). It fails on an unsupported value. A collector that does not respond is not an
// error: that is reported to log, or to standard error if log is nil.
func StartTracing(ctx context.Context, service string, log *slog.Logger, attributes ...attribute.KeyValue) (*Tracing,
	error) {
	exporter, err := newExporter(ctx)
	if exporter == nil || err != nil {
		return &Tracing{}, err
	}
	attributes = append(attributes, attribute.String("service.name", service),
		attribute.String("service.version", Version()))
	of, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(),
		resource.WithAttributes(attributes...), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("tracing: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if log != nil {
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("cannot send spans", "error", err) }))
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(of))
	return &Tracing{Tracer: provider.Tracer("github.com/causeway-mesh/causeway"), provider: provider}, nil
}

// newExporter returns nil if tracing is off.
func newExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return nil, nil
	}
	switch exporter := os.Getenv("OTEL_TRACES_EXPORTER"); exporter {
	case "":
		if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
			return nil, nil
		}
	case "otlp":
	case "none":
		return nil, nil
	default:
		return nil, fmt.Errorf("tracing: OTEL_TRACES_EXPORTER is %q: want otlp or none", exporter)
	}
	switch protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"),
		os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL")); protocol {
	case "", "http/protobuf":
		return otlptracehttp.New(ctx)
	case "grpc":
		return otlptracegrpc.New(ctx)
	default:
		return nil, fmt.Errorf("tracing: OTEL_EXPORTER_OTLP_PROTOCOL is %q: want http/protobuf or grpc", protocol)
	}
}

// Close sends the remaining spans, for at most 3 s.
func (t *Tracing) Close() {
	if t.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), tracingDrainTimeout)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // only the spans are lost
}
