package server

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/causeway-mesh/causeway/printing"
)

// NewLogger writes to w at level (debug, info, warn, error) in format (text, json). It omits warnings and errors that
// repeat too often, and counts them in leftOut of the next. The error names the wrong setting.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log-level %q: want debug, info, warn or error", level)
	}
	w = printing.NewWriter(w) // JSON leaves controls of the second set and marks of direction as they are
	opts := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(limitRepeats(slog.NewTextHandler(w, opts), time.Now)), nil
	case "json":
		return slog.New(limitRepeats(slog.NewJSONHandler(w, opts), time.Now)), nil
	}
	return nil, fmt.Errorf("log-format %q: want text or json", format)
}
