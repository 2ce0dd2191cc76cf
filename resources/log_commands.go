package resources

import (
	"encoding/json"
	"fmt"
	"regexp"
)

// maxLogCommands limits the commands of all formats of one backend. Each may stand for a header of 60 KB, which the
// service that a producer's policy logs says: without a limit, one request costs its client's proxy gigabytes.
const maxLogCommands = 128

// maxLogBytes bounds one backend as JSON. Each outbound that it is for has a copy.
const maxLogBytes = 64 << 10

// commandBegins matches the begin of a command. It may also match a text behind a percent sign that is written as two.
var commandBegins = regexp.MustCompile(`%[A-Z][A-Z0-9_]+[(%:]`)

// tooLarge reports that a backend's formats have more commands than maxLogCommands, or that it has more bytes than
// maxLogBytes.
func (b *AccessLogBackend) tooLarge() error {
	n := 0
	for _, format := range b.formats() {
		n += len(commandBegins.FindAllStringIndex(format, -1))
	}
	if n > maxLogCommands {
		return fmt.Errorf("want at most %d commands in all formats, got %d", maxLogCommands, n)
	}
	raw, err := json.Marshal(b)
	if len(raw) > maxLogBytes {
		return fmt.Errorf("want at most %d bytes, got %d", maxLogBytes, len(raw))
	}
	return err
}

// formats returns the texts in which commands may stand.
func (b *AccessLogBackend) formats() (out []string) {
	values := func(of []LogValue) {
		for i := range of {
			out = append(out, of[i].Value)
		}
	}
	format := func(f *LogFormat) {
		if f == nil {
			return
		}
		if f.Plain != nil {
			out = append(out, *f.Plain)
		}
		values(f.JSON)
	}
	if b.File != nil {
		format(b.File.Format)
	}
	if b.TCP != nil {
		format(b.TCP.Format)
	}
	if b.OpenTelemetry == nil {
		return out
	}
	values(b.OpenTelemetry.Attributes)
	var body any
	if json.Unmarshal(b.OpenTelemetry.Body, &body) != nil {
		return out // absent, or refused elsewhere
	}
	return append(out, textsOf(body)...)
}

// textsOf returns all strings of a value of JSON, without keys.
func textsOf(value any) (out []string) {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		for _, item := range v {
			out = append(out, textsOf(item)...)
		}
	case map[string]any:
		for _, item := range v {
			out = append(out, textsOf(item)...)
		}
	}
	return out
}
