package store

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// maxTraces bounds the traces that a change carries. Beyond it, the latest are kept.
const maxTraces = 8

// Cause records where a change comes from, on its way from a write to the proxies. It is kept in memory with the commit
// for as long as the changelog reaches back to it, and is never durable. Only metrics, traces and the time at which
// streams look for changes depend on it.
type Cause struct {
	// Written is the time of the oldest write in it, made at its origin but measured by this process's clock. A store
	// sets the current time if it is zero; elsewhere zero means unknown.
	Written time.Time
	// Traces are the operations that the change belongs to. The slice is shared and must not be changed.
	Traces []trace.SpanContext
}

// CauseOf returns the cause of what ctx does now, with the current span if it is sampled.
func CauseOf(ctx context.Context) Cause {
	c := Cause{Written: time.Now()}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() && span.IsSampled() {
		c.Traces = []trace.SpanContext{span}
	}
	return c
}

// Join merges other into c: the next step has both causes. The older time and the latest traces are kept.
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

// Steps holds one span for each trace of a Cause. nil is valid and does nothing.
type Steps []trace.Span

// Start begins a step in each trace; tracer may be nil.
func (c *Cause) Start(tracer trace.Tracer, name string, attributes ...attribute.KeyValue) Steps {
	if tracer == nil {
		return nil
	}
	steps := make(Steps, len(c.Traces))
	for i, parent := range c.Traces {
		_, steps[i] = tracer.Start(trace.ContextWithRemoteSpanContext(context.Background(), parent), name,
			trace.WithAttributes(attributes...))
	}
	return steps
}

// Contexts returns the span contexts that later steps continue from.
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

// End ends the step. A problem that is not empty marks it as failed.
func (s Steps) End(problem string, attributes ...attribute.KeyValue) {
	for _, span := range s {
		span.SetAttributes(attributes...)
		if problem != "" {
			span.SetStatus(codes.Error, problem)
		}
		span.End()
	}
}
