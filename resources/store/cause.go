package store

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// maxTraces bounds how many traces a change carries; of more, the latest are kept.
const maxTraces = 8

// Cause is where a change comes from, as it is told on the way from a write to the proxies. It is kept in memory with the
// commit, while the changelog reaches back to it; it is never durable, and but for metrics, traces and when streams look nothing depends on it.
type Cause struct {
	// Written is when the oldest write in it was made, at its origin but by this process's clock. A store fills in the
	// present; zero is not known.
	Written time.Time
	// Traces are the operations that the change is a step of. The slice is shared and must not be changed.
	Traces []trace.SpanContext
}

// CauseOf is the cause of what ctx does now: the span under way, if there is one that is recorded.
func CauseOf(ctx context.Context) Cause {
	c := Cause{Written: time.Now()}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() && span.IsSampled() {
		c.Traces = []trace.SpanContext{span}
	}
	return c
}

// Join takes the other cause in: what happens next is because of both.
func (c *Cause) Join(other *Cause) {
	if c.Written.IsZero() || !other.Written.IsZero() && other.Written.Before(c.Written) {
		c.Written = other.Written
	}
	if len(other.Traces) == 0 {
		return
	}
	joined := slices.Concat(c.Traces, other.Traces)
	c.Traces = joined[max(len(joined)-maxTraces, 0):]
}

// Steps are spans of one step in each trace of a Cause. None is a good value, with which nothing happens.
type Steps []trace.Span

// Start begins a step in each trace; tracer may be nil.
func (c *Cause) Start(tracer trace.Tracer, name string, attributes ...attribute.KeyValue) Steps {
	if tracer == nil {
		return nil
	}
	steps := make(Steps, len(c.Traces))
	for i, parent := range c.Traces {
		_, steps[i] = tracer.Start(trace.ContextWithRemoteSpanContext(context.Background(), parent), name, trace.WithAttributes(attributes...))
	}
	return steps
}

// Contexts are what goes on from here.
func (s Steps) Contexts() []trace.SpanContext {
	if len(s) == 0 {
		return nil
	}
	out := make([]trace.SpanContext, len(s))
	for i, span := range s {
		out[i] = span.SpanContext()
	}
	return out
}

// End ends the step; a problem, unless it is empty, marks it as failed.
func (s Steps) End(problem string, attributes ...attribute.KeyValue) {
	for _, span := range s {
		span.SetAttributes(attributes...)
		if problem != "" {
			span.SetStatus(codes.Error, problem)
		}
		span.End()
	}
}
