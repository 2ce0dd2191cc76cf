package accesslog

import (
	"fmt"
	"path"
	"strings"
)

// Sink is where proxies write their access logs: Service, Stdout, or the absolute path of a file on the proxy's
// machine.
type Sink string

// Sinks that are not files.
const (
	// Service is the collector of this package, in the zone.
	Service Sink = "als"
	// Stdout is the proxy's standard output.
	Stdout Sink = "stdout"
)

// ParseSinks parses a list of sinks, separated by commas; an empty text means none.
func ParseSinks(text string) ([]Sink, error) {
	if text == "" {
		return nil, nil
	}
	var out []Sink
	for part := range strings.SplitSeq(text, ",") {
		s := Sink(strings.TrimSpace(part))
		if s != Service && s != Stdout && !path.IsAbs(string(s)) {
			return nil, fmt.Errorf("%q: want als, stdout, or the absolute path of a file", s)
		}
		out = append(out, s)
	}
	return out, nil
}
