package resources

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

// AccessLogConf is the `default` of a MeshAccessLog, in Kuma's format: each request, or connection on TCP, is logged to
// each of the backends.
type AccessLogConf struct {
	Backends []AccessLogBackend `json:"backends,omitempty"`
}

// Further types of backends.
const (
	BackendFile = "File"
	BackendTCP  = "Tcp"
)

// AccessLogBackend is the destination of a log. Type names the other field that is set.
type AccessLogBackend struct {
	Type          string            `json:"type,omitempty"`
	TCP           *TCPLog           `json:"tcp,omitempty"`
	File          *FileLog          `json:"file,omitempty"`
	OpenTelemetry *OpenTelemetryLog `json:"openTelemetry,omitempty"`
}

// TCPLog sends lines to a host and port.
type TCPLog struct {
	Address string     `json:"address,omitempty"`
	Format  *LogFormat `json:"format,omitempty"`
}

// FileLog appends lines to a file of the proxy's machine. The paths /dev/stdout and /dev/stderr mean those of the
// proxy.
type FileLog struct {
	Path   string     `json:"path,omitempty"`
	Format *LogFormat `json:"format,omitempty"`
}

// Types of LogFormats.
const (
	LogPlain = "Plain"
	LogJSON  = "Json"
)

// LogFormat is the format of a line: Plain text, or a JSON object of the pairs of JSON, with Envoy's commands in both.
type LogFormat struct {
	Type            string     `json:"type,omitempty"`
	Plain           *string    `json:"plain,omitempty"`
	JSON            []LogValue `json:"json,omitempty"`
	OmitEmptyValues *bool      `json:"omitEmptyValues,omitempty"`
}

// LogValue is a key and a format.
type LogValue struct {
	Key   string `json:"key,omitempty"`
	Value string `json:"value,omitempty"`
}

// OpenTelemetryLog sends records over OTLP and gRPC, without TLS, to Endpoint: host:port, or host for port 4317. Body
// is a string, or a value of OTLP as JSON; strings in it are formats.
type OpenTelemetryLog struct {
	Endpoint   string          `json:"endpoint,omitempty"`
	Attributes []LogValue      `json:"attributes,omitempty"`
	Body       json.RawMessage `json:"body,omitempty"`
}

// Limits of one conf.
const (
	maxLogBackends = 8
	maxLogValues   = 64
)

// accessLog checks a MeshAccessLog.
func (v *validation) accessLog(c *AccessLogConf, at *fieldPath) {
	if RoleOf(v.resource, v.home.systemNamespace()) == RoleProducer {
		v.filesOfOthers(c, at.field("backends"))
	}
	v.collectors(c, at)
	if v.peer {
		return // the code that configures proxies skips invalid parts
	}
	at = at.field("backends")
	if len(c.Backends) > maxLogBackends {
		v.fail(at, "want at most %d, got %d", maxLogBackends, len(c.Backends))
	}
	for i := range c.Backends {
		b, at := &c.Backends[i], at.item(i)
		set := map[string]bool{BackendTCP: b.TCP != nil, BackendFile: b.File != nil,
			BackendOpenTelemetry: b.OpenTelemetry != nil}
		if !v.backendType(b.Type, set, at) {
			continue
		}
		if field, err := b.Check(); err != nil {
			for _, name := range strings.Split(field, ".") {
				at = at.field(name)
			}
			v.fail(at, "%v", err)
		}
	}
}

// filesOfOthers refuses files in a producer's policy: the proxies of the service's clients write its logs, on machines
// that are not the producer's.
func (v *validation) filesOfOthers(c *AccessLogConf, at *fieldPath) {
	for i := range c.Backends {
		if c.Backends[i].WritesFile() {
			v.fail(at.item(i).field("file").field("path"), "%q would be written on the machines of the service's clients: use /dev/stdout or OpenTelemetry, log on the inbounds of %s by from or rules, or have the operator write it",
				shorten(c.Backends[i].File.Path), v.customNamespace())
		}
	}
}

// WritesFile reports whether the proxy writes a file on its machine, other than its own output.
func (b *AccessLogBackend) WritesFile() bool {
	return b.File != nil && b.File.Path != "/dev/stdout" && b.File.Path != "/dev/stderr"
}

// Check returns the first problem of a backend, and its field, with dots.
func (b *AccessLogBackend) Check() (field string, err error) {
	if err := b.tooLarge(); err != nil {
		return backendNames[b.Type], err
	}
	switch {
	case b.File != nil:
		if err := checkLogPath(b.File.Path); err != nil {
			return "file.path", err
		}
		return b.File.Format.check("file.format")
	case b.TCP != nil:
		if _, _, err := hostPort(b.TCP.Address, 0); err != nil {
			return "tcp.address", err
		}
		return b.TCP.Format.check("tcp.format")
	case b.OpenTelemetry != nil:
		return b.OpenTelemetry.check("openTelemetry")
	}
	return "type", fmt.Errorf("the backend has no field of its type")
}

func checkLogPath(file string) error {
	switch {
	case file == "/dev/stdout" || file == "/dev/stderr":
		return nil
	case !path.IsAbs(file) || path.Clean(file) != file || len(file) > maxTagBytes ||
		strings.ContainsFunc(file, func(r rune) bool { return r < ' ' }):
		return fmt.Errorf("%q is not the absolute path of a file", shorten(file))
	case strings.HasPrefix(file, "/dev/") || strings.HasPrefix(file, "/proc/") || strings.HasPrefix(file, "/sys/"):
		return fmt.Errorf("%q is a device: only /dev/stdout and /dev/stderr accept a log", shorten(file))
	}
	return nil
}

// check checks a format. A nil format is the default.
func (f *LogFormat) check(at string) (field string, err error) {
	switch {
	case f == nil:
		return "", nil
	case f.Type != LogPlain && f.Type != LogJSON:
		return at + ".type", fmt.Errorf("want %s or %s, got %q", LogPlain, LogJSON, shorten(f.Type))
	case f.Type == LogPlain && (f.Plain == nil || *f.Plain == ""):
		return at + ".plain", fmt.Errorf("is required for a format of type %s", f.Type)
	case f.Type == LogJSON && len(f.JSON) == 0:
		return at + ".json", fmt.Errorf("is required for a format of type %s", f.Type)
	case f.Type == LogPlain && len(f.JSON) > 0:
		return at + ".json", fmt.Errorf("does not belong to a format of type %s", f.Type)
	case f.Type == LogJSON && f.Plain != nil:
		return at + ".plain", fmt.Errorf("does not belong to a format of type %s", f.Type)
	case f.Plain != nil:
		return at + ".plain", CheckLogFormat(*f.Plain)
	}
	return at + ".json", checkLogValues(f.JSON)
}

func checkLogValues(values []LogValue) error {
	if len(values) > maxLogValues {
		return fmt.Errorf("want at most %d, got %d", maxLogValues, len(values))
	}
	seen := map[string]bool{}
	for i, value := range values {
		switch err := CheckLogFormat(value.Value); {
		case value.Key == "" || len(value.Key) > maxTagBytes:
			return fmt.Errorf("[%d].key: want 1 to %d bytes", i, maxTagBytes)
		case seen[value.Key]:
			return fmt.Errorf("[%d].key: %q appears twice", i, shorten(value.Key))
		case err != nil:
			return fmt.Errorf("[%d].value: %w", i, err)
		}
		seen[value.Key] = true
	}
	return nil
}

func (o *OpenTelemetryLog) check(at string) (field string, err error) {
	if _, _, err := ParseCollectorEndpoint(o.Endpoint); err != nil {
		return at + ".endpoint", err
	}
	if err := checkLogValues(o.Attributes); err != nil {
		return at + ".attributes", err
	}
	var body any
	if len(o.Body) > 0 {
		if err := json.Unmarshal(o.Body, &body); err != nil {
			return at + ".body", err
		}
	}
	return at + ".body", checkStrings(body)
}

// checkStrings checks all strings of a value as formats.
func checkStrings(value any) error {
	for _, text := range textsOf(value) {
		if err := CheckLogFormat(text); err != nil {
			return err
		}
	}
	return nil
}
