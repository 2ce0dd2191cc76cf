// Package panics keeps a defect that one peer can reach from ending the process: a panic in what serves one peer ends that peer's
// session and nothing else. What many share is not guarded: a process that may hold half a change ends, and starts again from what
// is durable (docs/decisions/0043-what-a-panic-ends.md).
package panics

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// Metric counts what was caught, by what was served. Message is what the log says of each.
const (
	Metric  = "causeway_panics_total"
	Message = "panic: what served one peer was ended"
)

// Err is what ends a session whose code panicked. The peer is told no more.
var Err = errors.New("an internal error ended this: the server's log has it")

// Guard catches panics, logs each with its stack and counts it. A nil Guard catches nothing: the process ends, which is what fails
// a test. Safe for concurrent use.
type Guard struct {
	log   *slog.Logger
	total *prometheus.CounterVec
}

// New returns a guard that writes to log. It is a prometheus.Collector, for whoever has a registry.
func New(log *slog.Logger) *Guard {
	return &Guard{log: log, total: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: Metric, Help: "Panics that ended what served one peer, and nothing else; each is a defect, and in the log with its stack.",
	}, []string{"serving"})}
}

// Describe implements prometheus.Collector.
func (g *Guard) Describe(out chan<- *prometheus.Desc) { g.total.Describe(out) }

// Collect implements prometheus.Collector.
func (g *Guard) Collect(out chan<- prometheus.Metric) { g.total.Collect(out) }

// Catch is to be deferred by the function that serves a peer: it turns a panic into Err. Serving says what is served, as one of few
// words, and goes into the metric.
func (g *Guard) Catch(serving string, err *error) {
	if g == nil {
		return
	}
	if reason := recover(); reason != nil {
		g.Caught(serving, reason)
		*err = Err
	}
}

// Do runs what serves a peer and returns its error, or Err when it panicked.
func (g *Guard) Do(serving string, run func() error) (err error) {
	defer g.Catch(serving, &err)
	return run()
}

// Caught notes a panic that the caller has recovered from, with the stack as it is where it is called: in a deferred function that is
// the one of the panic. A nil Guard ends the process.
func (g *Guard) Caught(serving string, reason any) {
	stack := debug.Stack()
	if g == nil {
		end(reason, stack)
	}
	g.log.Error(Message, "serving", serving, "reason", fmt.Sprint(reason), "stack", string(stack))
	g.total.WithLabelValues(serving).Inc()
}

// end ends the process from a goroutine that nobody recovers, as net/http would.
func end(reason any, stack []byte) {
	go panic(fmt.Sprintf("%v\n\n%s", reason, stack))
	select {}
}
