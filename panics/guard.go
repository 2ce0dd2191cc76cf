// Package panics prevents a defect that one peer can trigger from ending the process: a panic in code that serves one
// peer ends only that peer's session. Code that many peers share is not guarded: a process that may hold half a change
// ends, and restarts from durable state (docs/decisions/0043-what-a-panic-ends.md).
package panics

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// Metric counts the caught panics, by what was served. Message is the log message of each.
const (
	Metric  = "causeway_panics_total"
	Message = "panic: what served one peer was ended"
)

// Err ends a session whose code panicked. The peer learns no more.
var Err = errors.New("an internal error ended this: the server's log has it")

// Guard catches panics, logs each with its stack and counts it. A nil Guard catches nothing: the process ends, so that
// a test fails. It is safe for concurrent use.
type Guard struct {
	log   *slog.Logger
	total *prometheus.CounterVec
}

// New returns a guard that logs to log. The guard is a prometheus.Collector for the caller to register.
func New(log *slog.Logger) *Guard {
	return &Guard{log: log, total: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: Metric, Help: "Panics that ended what served one peer, and nothing else; each is a defect, and in the log with its stack.",
	}, []string{"serving"})}
}

// Describe implements prometheus.Collector.
func (g *Guard) Describe(out chan<- *prometheus.Desc) { g.total.Describe(out) }

// Collect implements prometheus.Collector.
func (g *Guard) Collect(out chan<- prometheus.Metric) { g.total.Collect(out) }

// Catch turns a panic into Err. The function that serves a peer must defer it. serving names what is served, as one of
// a few words; it becomes a label of the metric.
func (g *Guard) Catch(serving string, err *error) {
	if g == nil {
		return
	}
	if reason := recover(); reason != nil {
		g.Caught(serving, reason)
		*err = Err
	}
}

// Do runs the function that serves a peer and returns its error, or Err if it panicked.
func (g *Guard) Do(serving string, run func() error) (err error) {
	defer g.Catch(serving, &err)
	return run()
}

// Caught logs and counts a panic that the caller has recovered from, with the stack of the current goroutine. In a
// deferred function that is the stack of the panic. A nil Guard ends the process.
func (g *Guard) Caught(serving string, reason any) {
	stack := debug.Stack()
	if g == nil {
		end(reason, stack)
	}
	g.log.Error(Message, "serving", serving, "reason", fmt.Sprint(reason), "stack", string(stack))
	g.total.WithLabelValues(serving).Inc()
}

// end ends the process by a panic in a new goroutine, where no caller, such as net/http, recovers it.
func end(reason any, stack []byte) {
	go panic(fmt.Sprintf("%v\n\n%s", reason, stack))
	select {}
}
