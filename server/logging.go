package server

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mesh/causeway/printing"
)

// NewLogger writes to w at level (debug, info, warn, error) in format (text, json). It omits warnings and errors that
// repeat too often, and counts them in leftOut of the next. A w that takes no lines loses them and delays nobody for
// long: PatientWriter. The error names the wrong setting.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log-level %q: want debug, info, warn or error", level)
	}
	out := NewPatientWriter(w)
	w = printing.NewWriter(out) // JSON leaves controls of the second set and marks of direction as they are
	opts := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(limitRepeats(slog.NewTextHandler(w, opts), out, time.Now)), nil
	case "json":
		return slog.New(limitRepeats(slog.NewJSONHandler(w, opts), out, time.Now)), nil
	}
	return nil, fmt.Errorf("log-format %q: want text or json", format)
}

// AddLog shows how many lines of a log of NewLogger were lost.
func (d *Diagnostics) AddLog(log *slog.Logger) {
	d.Registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "causeway_log_lines_lost_total",
		Help: "Lines of the log that were lost because standard error did not take them, as when a collector of logs hangs or ends.",
	}, func() float64 {
		if h, ok := log.Handler().(*repeats); ok {
			return float64(h.state.out.Lost())
		}
		return 0
	}))
}
