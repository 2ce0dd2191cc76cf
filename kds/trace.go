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

// Words of a progress that describe the origin of a change: its age in microseconds, and a traceparent for each trace.
const (
	wordAge   = "age="
	wordTrace = "trace="
	// maxTraceWords bounds the traces that are read from a peer.
	maxTraceWords = 8
)

// announced returns our features for a server with this tracer.
func announced(tracer trace.Tracer) exchange.Features {
	if tracer == nil {
		return exchange.OwnFeatures() &^ exchange.FeatureTraces
	}
	return exchange.OwnFeatures()
}

// ageOf returns the age of the oldest write, or zero if it is unknown.
func ageOf(c *store.Cause, now time.Time) time.Duration {
	if c.Written.IsZero() {
		return 0
	}
	return max(now.Sub(c.Written), 0)
}

// trace starts the sending step of a change in each of its traces, for a peer that continues them.
func (s *sender) trace(sub *subscription, c *store.Cause) store.Steps {
	if s.tracer == nil || len(c.Traces) == 0 || !s.packer.audience.Features.Has(exchange.FeatureTraces) {
		return nil
	}
	return c.Start(s.tracer, "kds send", attribute.String("zone", s.zone),
		attribute.String("type", string(sub.descriptor.Type)), attribute.String("direction", s.direction.Label()))
}

// abandon ends the traced steps that are still open with the stream.
func (s *sender) abandon() {
	for _, sub := range s.order {
		if sub.inflight != nil {
			sub.inflight.steps.End("the stream ended before the answer")
		}
	}
}

// causeOf returns the cause of the change in a message, and the steps of applying it.
func (v *receiver) causeOf(t resources.Type, said *progress) (store.Cause, store.Steps) {
	var c store.Cause
	if said.age > 0 {
		c.Written = time.Now().Add(-said.age)
	}
	if v.tracer == nil || len(said.traces) == 0 {
		return c, nil
	}
	c.Traces = said.traces
	steps := c.Start(v.tracer, "kds receive", attribute.String("zone", v.arrival.Zone),
		attribute.String("type", string(t)), attribute.String("direction", v.arrival.Direction.Label()))
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
		if sc := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(),
			carrier)); sc.IsValid() && sc.IsSampled() {
			p.traces = append(p.traces, sc)
		}
	}
}

// traceParent returns a span context in W3C form.
func traceParent(sc trace.SpanContext) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), sc), carrier)
	return carrier["traceparent"]
}
