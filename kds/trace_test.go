package kds

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

func recording(t *testing.T) (trace.Tracer, *tracetest.InMemoryExporter) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return provider.Tracer("test"), spans
}

// tracedPut writes as a traced request does, and returns the request's span.
func tracedPut(t *testing.T, tracer trace.Tracer, s store.Store, r *resources.Resource) trace.SpanContext {
	t.Helper()
	ctx, span := tracer.Start(t.Context(), "request")
	defer span.End()
	if _, err := s.Apply(ctx, store.Batch{Ops: []store.Op{{Put: r}}, Cause: store.CauseOf(ctx)}); err != nil {
		t.Fatal(err)
	}
	return span.SpanContext()
}

// TestTracesGoOnInTheZone checks that a traced write gets a sending step and an applying step, each the child of the
// previous one, and that the zone's commit continues the trace. The age of the write travels with or without a trace.
func TestTracesGoOnInTheZone(t *testing.T) {
	tracer, spans := recording(t)
	g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.Tracer = tracer })
	s := store.NewMemory()
	z := startZone(t, "zone-1", g.address, s, func(c *ZoneConfig) { c.Tracer = tracer })
	key, spec := permission("p")
	eventually(t, "the first list", func() bool { return g.events.count(Acknowledged, key.Type) == 1 })
	before := time.Now()
	root := tracedPut(t, tracer, g.store, written(t, globalHome, key, spec))
	eventually(t, "three spans", func() bool { return len(spans.GetSpans()) == 3 })
	byName := map[string]tracetest.SpanStub{}
	for _, span := range spans.GetSpans() {
		byName[span.Name] = span
		if span.SpanContext.TraceID() != root.TraceID() {
			t.Errorf("%s is of another trace", span.Name)
		}
	}
	if byName["kds send"].Parent.SpanID() != root.SpanID() ||
		byName["kds receive"].Parent.SpanID() != byName["kds send"].SpanContext.SpanID() {
		t.Errorf("the spans are no chain: %+v", byName)
	}
	commits, _ := s.Changes(0)
	cause := commits[len(commits)-1].Cause
	if len(cause.Traces) != 1 || cause.Traces[0].SpanID() != byName["kds receive"].SpanContext.SpanID() {
		t.Errorf("the zone's commit carries %v", cause.Traces)
	}
	if cause.Written.Before(before.Add(-time.Second)) || cause.Written.After(time.Now()) {
		t.Errorf("the write counts as made at %s, it was after %s", cause.Written, before)
	}
	z.stop()
}

// TestTracesAreOnlyForWhoAsks checks that a peer without the feature gets no trace, and that a server without tracing
// sends none.
func TestTracesAreOnlyForWhoAsks(t *testing.T) {
	tracer, _ := recording(t)
	for name, tt := range map[string]struct {
		tracer   trace.Tracer
		features exchange.Features
		want     bool
	}{
		"both trace":             {tracer, exchange.OwnFeatures(), true},
		"the peer does not":      {tracer, announced(nil), false},
		"the peer is plain":      {tracer, plainFeatures, false},
		"the server does not":    {nil, exchange.OwnFeatures(), false},
		"the peer cannot resume": {tracer, exchange.OwnFeatures() &^ exchange.FeatureResume, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.Tracer = tt.tracer })
			if g.config.Self.Features.Has(exchange.FeatureTraces) != (tt.tracer != nil) {
				t.Error("it announces what it does not do, or the other way round")
			}
			key, spec := permission("p")
			p := dialPeer(t, "peer", g.address, tt.features)
			p.openDown(key.Type)
			p.ack(p.receive())
			tracedPut(t, tracer, g.store, written(t, globalHome, key, spec))
			m := p.receive()
			if got := strings.Contains(m.GetSystemVersionInfo(), wordTrace); got != tt.want {
				t.Errorf("the message says %q", m.GetSystemVersionInfo())
			}
			if tt.features == plainFeatures && m.GetSystemVersionInfo() != "" {
				t.Errorf("a plain peer is told %q", m.GetSystemVersionInfo())
			}
		})
	}
}

// TestProgressSurvivesAnything checks that the causes that a peer sends are bounded and checked.
func TestProgressSurvivesAnything(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	said, ok := parseProgress("7 more age=1500 trace=" + parent + " trace=nonsense trace=" + strings.TrimSuffix(parent,
		"1") + "0 age=-3 age=x word")
	if !ok || said.revision != 7 || !said.more || said.age != 1500*time.Microsecond || len(said.traces) != 1 ||
		traceParent(said.traces[0]) != parent {
		t.Errorf("read %+v", said)
	}
	if said, _ := parseProgress("7" + strings.Repeat(" trace="+parent, 1000)); len(said.traces) != maxTraceWords {
		t.Errorf("%d traces of a thousand", len(said.traces))
	}
	if text := (progress{revision: 7, more: true, age: 1500 * time.Microsecond,
		traces: said.traces}).String(); text != "7 more age=1500 trace="+parent {
		t.Errorf("wrote %q", text)
	}
}

// TestTracingOffCostsNothing checks that tracing costs no allocation while it is off.
func TestTracingOffCostsNothing(t *testing.T) {
	s := newSender(senderConfig{store: store.NewMemory(), features: exchange.OwnFeatures()})
	v := newReceiver(receiverConfig{ledger: tracker.NewLedger(time.Now, nil)})
	d, _ := resources.Lookup(resources.TypeMesh)
	sub := &subscription{descriptor: d}
	cause := store.Cause{Written: time.Now()}
	said := progress{age: time.Second}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		_ = store.CauseOf(ctx)
		s.trace(sub, &cause).End("")
		c, steps := v.causeOf(d.Type, &said)
		steps.End("")
		c.Join(&cause)
		_ = steps.Contexts()
	}); n != 0 {
		t.Errorf("%v allocations for each change", n)
	}
}
