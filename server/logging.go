package server

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/causeway-mesh/causeway/printing"
)

// NewLogger writes to w at level (debug, info, warn, error) in format (text, json). The error names the wrong setting.
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("log-level %q: want debug, info, warn or error", level)
	}
	w = printing.NewWriter(w) // JSON leaves controls of the second set and marks of direction as they are
	opts := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return nil, fmt.Errorf("log-format %q: want text or json", format)
}
