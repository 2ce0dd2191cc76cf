package resources

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// TraceConf is the `default` of a MeshTrace, in Kuma's format.
type TraceConf struct {
	// Backends has one item: a proxy sends its spans to one collector.
	Backends []TraceBackend `json:"backends,omitempty"`
	Sampling *TraceSampling `json:"sampling,omitempty"`
	Tags     []TraceTag     `json:"tags,omitempty"`
}

// Types of TraceBackends.
const (
	BackendZipkin        = "Zipkin"
	BackendDatadog       = "Datadog"
	BackendOpenTelemetry = "OpenTelemetry"
)

// TraceBackend is a collector of spans. Type names the other field that is set.
type TraceBackend struct {
	Type          string           `json:"type,omitempty"`
	Zipkin        *ZipkinBackend   `json:"zipkin,omitempty"`
	Datadog       *DatadogBackend  `json:"datadog,omitempty"`
	OpenTelemetry *OpenTelemetryAt `json:"openTelemetry,omitempty"`
}

// ZipkinBackend takes spans in Zipkin's format over HTTP. APIVersion is httpJson (the default) or httpProto.
// SharedSpanContext, true unless set, gives both ends of a call the same span.
type ZipkinBackend struct {
	URL               string `json:"url,omitempty"`
	TraceID128Bit     *bool  `json:"traceId128bit,omitempty"`
	APIVersion        string `json:"apiVersion,omitempty"`
	SharedSpanContext *bool  `json:"sharedSpanContext,omitempty"`
}

// DatadogBackend is Datadog's agent.
type DatadogBackend struct {
	URL          string `json:"url,omitempty"`
	SplitService *bool  `json:"splitService,omitempty"`
}

// OpenTelemetryAt is a collector that accepts OTLP over gRPC, without TLS, at Endpoint: host:port, or host for port
// 4317.
type OpenTelemetryAt struct {
	Endpoint string `json:"endpoint,omitempty"`
}

// TraceSampling sets the share of requests that is traced, in percent; an unset value means 100. Overall limits the
// other two.
type TraceSampling struct {
	Overall json.RawMessage `json:"overall,omitempty" shape:"intOrString"`
	Client  json.RawMessage `json:"client,omitempty" shape:"intOrString"`
	Random  json.RawMessage `json:"random,omitempty" shape:"intOrString"`
}

// TraceTag is a tag of each span: Literal, or the value of a request's header.
type TraceTag struct {
	Name    string          `json:"name,omitempty"`
	Literal *string         `json:"literal,omitempty"`
	Header  *TraceTagHeader `json:"header,omitempty"`
}

// TraceTagHeader is a header of the request. Without the header and a Default, the span has no such tag.
type TraceTagHeader struct {
	Name    string `json:"name,omitempty"`
	Default string `json:"default,omitempty"`
}

// Limits of what one conf sends to a proxy.
const (
	maxTraceTags = 32
	maxTagBytes  = 1024
)

// defaultOTLPPort is the port of OTLP over gRPC.
const defaultOTLPPort = 4317

// trace checks a MeshTrace. The code that configures proxies skips what else a peer sends.
func (v *validation) trace(c *TraceConf, at *fieldPath) {
	v.collectors(c, at)
	if v.peer {
		return
	}
	if len(c.Backends) > 1 {
		v.fail(at.field("backends").item(1), "a proxy sends spans to one backend: leave one")
	}
	for i := range c.Backends {
		v.traceBackend(&c.Backends[i], at.field("backends").item(i))
	}
	if s := c.Sampling; s != nil {
		for _, one := range []struct {
			name string
			raw  json.RawMessage
		}{{"overall", s.Overall}, {"client", s.Client}, {"random", s.Random}} {
			if len(one.raw) > 0 {
				v.percentage(one.raw, at.field("sampling").field(one.name))
			}
		}
	}
	if len(c.Tags) > maxTraceTags {
		v.fail(at.field("tags"), "want at most %d, got %d", maxTraceTags, len(c.Tags))
	}
	for i := range c.Tags {
		v.traceTag(&c.Tags[i], at.field("tags").item(i))
	}
}

func (v *validation) traceBackend(b *TraceBackend, at *fieldPath) {
	set := map[string]bool{BackendZipkin: b.Zipkin != nil, BackendDatadog: b.Datadog != nil,
		BackendOpenTelemetry: b.OpenTelemetry != nil}
	if !v.backendType(b.Type, set, at) {
		return
	}
	switch b.Type {
	case BackendZipkin:
		if _, err := ParseCollectorURL(b.Zipkin.URL); err != nil {
			v.fail(at.field("zipkin").field("url"), "%v", err)
		}
		if a := b.Zipkin.APIVersion; a != "" && a != "httpJson" && a != "httpProto" {
			v.fail(at.field("zipkin").field("apiVersion"), "want httpJson or httpProto, got %q", shorten(a))
		}
	case BackendDatadog:
		if u, err := ParseCollectorURL(b.Datadog.URL); err != nil {
			v.fail(at.field("datadog").field("url"), "%v", err)
		} else if u.Path != "" && u.Path != "/" {
			v.fail(at.field("datadog").field("url"), "want a host and a port, without a path")
		}
	case BackendOpenTelemetry:
		if _, _, err := ParseCollectorEndpoint(b.OpenTelemetry.Endpoint); err != nil {
			v.fail(at.field("openTelemetry").field("endpoint"), "%v", err)
		}
	}
}

// backendNames are the fields of backends by their types.
var backendNames = map[string]string{
	BackendZipkin: "zipkin", BackendDatadog: "datadog", BackendOpenTelemetry: "openTelemetry",
	BackendFile: "file", BackendTCP: "tcp", BackendPrometheus: "prometheus",
}

// backendType checks that exactly the field of the type is set.
func (v *validation) backendType(typ string, set map[string]bool, at *fieldPath) bool {
	if _, known := set[typ]; !known {
		v.fail(at.field("type"), "%q is not a type of backend here: want %s", shorten(typ), oneOf(set))
		return false
	}
	for other, is := range set {
		if is && other != typ {
			v.fail(at.field(backendNames[other]), "does not belong to a backend of type %s", typ)
		}
	}
	if !set[typ] {
		v.fail(at.field(backendNames[typ]), "is required for a backend of type %s", typ)
	}
	return set[typ]
}

func (v *validation) traceTag(t *TraceTag, at *fieldPath) {
	if t.Name == "" || len(t.Name) > maxTagBytes {
		v.fail(at.field("name"), "want 1 to %d bytes", maxTagBytes)
	}
	switch {
	case (t.Literal == nil) == (t.Header == nil):
		v.fail(at, "want one of literal and header")
	case t.Literal != nil && (*t.Literal == "" || len(*t.Literal) > maxTagBytes):
		v.fail(at.field("literal"), "want 1 to %d bytes", maxTagBytes)
	case t.Header != nil && (!headerName.MatchString(t.Header.Name) || len(t.Header.Name) > maxTagBytes):
		v.fail(at.field("header").field("name"), "%q is not the name of a header", shorten(t.Header.Name))
	case t.Header != nil && len(t.Header.Default) > maxTagBytes:
		v.fail(at.field("header").field("default"), "want at most %d bytes", maxTagBytes)
	}
}

// ParseCollectorURL parses the URL of a collector that is reached over HTTP.
func ParseCollectorURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not the URL of a collector: write http://host:port/path", shorten(s))
	}
	if _, _, err := hostPort(u.Host, 80); err != nil {
		return nil, err
	}
	return u, nil
}

// CollectorAddress returns the host and port of a URL that ParseCollectorURL accepted.
func CollectorAddress(u *url.URL) (host string, port uint32, err error) { return hostPort(u.Host, 80) }

// ParseCollectorEndpoint parses host:port, or a host alone for the port of OTLP over gRPC.
func ParseCollectorEndpoint(s string) (host string, port uint32, err error) {
	return hostPort(s, defaultOTLPPort)
}

var errNoCollector = errors.New("is not a host and port: write collector.example:4317")

func hostPort(s string, otherwise uint32) (string, uint32, error) {
	host, text, err := net.SplitHostPort(s)
	if err != nil {
		host, text = s, strconv.FormatUint(uint64(otherwise), 10)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	_, ip := ParseIP(host)
	if err != nil || port == 0 || ip != nil && (!hostName.MatchString(host) || len(host) > MaxNameBytes) {
		return "", 0, fmt.Errorf("%q %w", shorten(s), errNoCollector)
	}
	return host, uint32(port), nil
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([-_.A-Za-z0-9]*[A-Za-z0-9])?$`)

// oneOf lists the types of backends, in order.
func oneOf(set map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(set)), ", ") }
