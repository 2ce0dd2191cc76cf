package kds

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// The words of a progress that say where a change comes from: its age in microseconds, and a traceparent for each trace.
const (
	wordAge   = "age="
	wordTrace = "trace="
	// maxTraceWords bounds what is taken of a peer's traces.
	maxTraceWords = 8
)

// announced are our features for a server with this tracer.
func announced(tracer trace.Tracer) exchange.Features {
	if tracer == nil {
		return exchange.OwnFeatures() &^ exchange.FeatureTraces
	}
	return exchange.OwnFeatures()
}

// ageOf is how long ago the oldest write was; zero when nobody knows.
func ageOf(c *store.Cause, now time.Time) time.Duration {
	if c.Written.IsZero() {
		return 0
	}
	return max(now.Sub(c.Written), 0)
}

// trace begins the sending of a change in each of its traces, for a peer that goes on with them.
func (s *sender) trace(sub *subscription, c *store.Cause) store.Steps {
	if s.tracer == nil || len(c.Traces) == 0 || !s.audience.Features.Has(exchange.FeatureTraces) {
		return nil
	}
	return c.Start(s.tracer, "kds send", attribute.String("zone", s.zone), attribute.String("type", string(sub.descriptor.Type)), attribute.String("direction", s.direction.Label()))
}

// abandon ends what is still under way with the stream.
func (s *sender) abandon() {
	for _, sub := range s.order {
		if sub.inflight != nil {
			sub.inflight.steps.End("the stream ended before the answer")
		}
	}
}

// causeOf is what a message says of the change in it, with the steps of applying it.
func (v *receiver) causeOf(t resources.Type, said *progress) (store.Cause, store.Steps) {
	var c store.Cause
	if said.age > 0 {
		c.Written = time.Now().Add(-said.age)
	}
	if v.tracer == nil || len(said.traces) == 0 {
		return c, nil
	}
	c.Traces = said.traces
	steps := c.Start(v.tracer, "kds receive", attribute.String("zone", v.arrival.Zone), attribute.String("type", string(t)), attribute.String("direction", v.arrival.Direction.Label()))
	c.Traces = steps.Contexts()
	return c, steps
}

// parseCause reads one word of a progress, if it is about the change's cause.
func (p *progress) parseCause(word string) {
	if age, ok := strings.CutPrefix(word, wordAge); ok {
		if n, err := strconv.ParseUint(age, 10, 50); err == nil {
			p.age = time.Duration(n) * time.Microsecond
		}
	}
	if parent, ok := strings.CutPrefix(word, wordTrace); ok && len(p.traces) < maxTraceWords {
		carrier := propagation.MapCarrier{"traceparent": parent}
		if sc := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier)); sc.IsValid() && sc.IsSampled() {
			p.traces = append(p.traces, sc)
		}
	}
}

// traceParent is a span context as W3C writes it.
func traceParent(sc trace.SpanContext) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), sc), carrier)
	return carrier["traceparent"]
}
