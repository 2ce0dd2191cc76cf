package resources

import (
	"fmt"
	"path"
	"regexp/syntax"
	"strings"

	"github.com/causeway-mesh/causeway/resources/reach"
)

// MetricConf is the `default` of a MeshMetric, in Kuma's format.
type MetricConf struct {
	Sidecar *MetricSidecar `json:"sidecar,omitempty"`
	// Applications lists applications whose metrics are exposed after the proxy's.
	Applications []MetricApplication `json:"applications,omitempty"`
	Backends     []MetricBackend     `json:"backends,omitempty"`
}

// MetricSidecar selects the proxy's metrics to expose. IncludeUnused also exposes those that were never counted. Regex
// matches the names that Envoy gives them, with dots.
type MetricSidecar struct {
	Regex         *string         `json:"regex,omitempty"`
	IncludeUnused *bool           `json:"includeUnused,omitempty"`
	Profiles      *MetricProfiles `json:"profiles,omitempty"`
}

// MetricProfiles exposes the metrics of one of AppendProfiles, all if there is none, without those that Exclude
// selects, and with those that Include selects.
type MetricProfiles struct {
	AppendProfiles []MetricProfile  `json:"appendProfiles,omitempty"`
	Include        []MetricSelector `json:"include,omitempty"`
	Exclude        []MetricSelector `json:"exclude,omitempty"`
}

// Names of MetricProfiles.
const (
	ProfileAll   = "All"
	ProfileBasic = "Basic"
	ProfileNone  = "None"
)

// MetricProfile is a named set of metrics: All, Basic (requests, connections, permissions and the state of the proxy)
// or None.
type MetricProfile struct {
	Name string `json:"name,omitempty"`
}

// Types of MetricSelectors.
const (
	SelectPrefix   = "Prefix"
	SelectExact    = "Exact"
	SelectContains = "Contains"
	SelectRegex    = "Regex"
)

// MetricSelector selects metrics by the names that Prometheus sees, with underscores. An expression may match a part.
type MetricSelector struct {
	Type  string `json:"type,omitempty"`
	Match string `json:"match,omitempty"`
}

// DefaultApplicationPath is where an application serves its metrics unless its MetricApplication sets a path.
const DefaultApplicationPath = "/metrics/prometheus"

// MetricApplication is the endpoint of an application's metrics, on the proxy's machine: 127.0.0.1 unless Address is
// set. Name, if there is one, becomes the label `application` of its metrics.
type MetricApplication struct {
	Name    *string `json:"name,omitempty"`
	Path    *string `json:"path,omitempty"`
	Address *string `json:"address,omitempty"`
	Port    uint32  `json:"port,omitempty"`
}

// BackendPrometheus is a backend that scrapes metrics.
const BackendPrometheus = "Prometheus"

// MetricBackend receives the metrics. Type names the other field that is set.
type MetricBackend struct {
	Type          string             `json:"type,omitempty"`
	Prometheus    *PrometheusBackend `json:"prometheus,omitempty"`
	OpenTelemetry *MetricPush        `json:"openTelemetry,omitempty"`
}

// PrometheusBackend serves metrics on a port of the Dataplane's address: 5670 and /metrics unless set.
type PrometheusBackend struct {
	ClientID *string        `json:"clientId,omitempty"`
	Port     *uint32        `json:"port,omitempty"`
	Path     *string        `json:"path,omitempty"`
	TLS      *PrometheusTLS `json:"tls,omitempty"`
}

// Values of PrometheusTLS.Mode.
const (
	MetricsInTheClear = "Disabled"
	MetricsInTheMesh  = "ActiveMTLSBackend"
)

// PrometheusTLS sets who may read the metrics: with ActiveMTLSBackend only clients with an identity of the mesh,
// otherwise anyone who reaches the port.
type PrometheusTLS struct {
	Mode string `json:"mode,omitempty"`
}

// MetricPush is a collector that metrics are sent to over OTLP and gRPC, without TLS.
type MetricPush struct {
	Endpoint        string  `json:"endpoint,omitempty"`
	RefreshInterval *string `json:"refreshInterval,omitempty"`
}

// Defaults of a PrometheusBackend.
const (
	DefaultMetricsPort = 5670
	DefaultMetricsPath = "/metrics"
)

// metric checks a MeshMetric.
func (v *validation) metric(c *MetricConf, at *fieldPath) {
	v.collectors(c, at)
	if v.peer {
		return // the code that configures proxies skips invalid parts
	}
	if c.Sidecar != nil {
		v.metricSidecar(c.Sidecar, at.field("sidecar"))
	}
	if len(c.Applications) > MaxApplications {
		v.fail(at.field("applications"), "want at most %d, got %d", MaxApplications, len(c.Applications))
	}
	for i := range c.Applications {
		if field, err := c.Applications[i].Check(); err != nil {
			v.fail(at.field("applications").item(i).field(field), "%v", err)
		}
	}
	prometheus, pushes := 0, 0
	for i := range c.Backends {
		b, at := &c.Backends[i], at.field("backends").item(i)
		if !v.backendType(b.Type, map[string]bool{BackendPrometheus: b.Prometheus != nil,
			BackendOpenTelemetry: b.OpenTelemetry != nil}, at) {
			continue
		}
		if b.Type == BackendOpenTelemetry {
			if _, _, err := ParseCollectorEndpoint(b.OpenTelemetry.Endpoint); err != nil {
				v.fail(at.field("openTelemetry").field("endpoint"), "%v", err)
			}
			v.duration(b.OpenTelemetry.RefreshInterval, at.field("openTelemetry").field("refreshInterval"), true)
			if pushes++; pushes > 1 {
				v.fail(at, "a proxy sends its metrics to one place: leave one backend of type OpenTelemetry")
			}
			continue
		}
		if prometheus++; prometheus > 1 {
			v.fail(at, "a proxy shows its metrics in one place: leave one backend of type Prometheus")
		}
		if field, err := b.Prometheus.Check(); err != nil {
			at = at.field("prometheus")
			for _, name := range strings.Split(field, ".") {
				at = at.field(name)
			}
			v.fail(at, "%v", err)
		}
	}
}

func (v *validation) metricSidecar(s *MetricSidecar, at *fieldPath) {
	if s.Regex != nil {
		if _, err := MetricExpression(*s.Regex); err != nil {
			v.fail(at.field("regex"), "%v", err)
		}
	}
	if s.Profiles == nil {
		return
	}
	at = at.field("profiles")
	for i, p := range s.Profiles.AppendProfiles {
		if p.Name != ProfileAll && p.Name != ProfileBasic && p.Name != ProfileNone {
			v.fail(at.field("appendProfiles").item(i).field("name"), "want %s, %s or %s, got %q", ProfileAll,
				ProfileBasic, ProfileNone, shorten(p.Name))
		}
	}
	for name, list := range map[string][]MetricSelector{"include": s.Profiles.Include, "exclude": s.Profiles.Exclude} {
		if len(list) > MaxMetricSelectors {
			v.fail(at.field(name), "want at most %d, got %d", MaxMetricSelectors, len(list))
		}
		for i := range list {
			if field, err := list[i].Check(); err != nil {
				v.fail(at.field(name).item(i).field(field), "%v", err)
			}
		}
	}
}

// Limits of a MetricConf.
const (
	MaxApplications    = 8
	MaxMetricSelectors = 32
)

// Check returns the problem of a selector, and its field.
func (s *MetricSelector) Check() (field string, err error) {
	switch s.Type {
	case SelectPrefix, SelectExact, SelectContains, SelectRegex:
	default:
		return "type", fmt.Errorf("want Prefix, Exact, Contains or Regex, got %q", shorten(s.Type))
	}
	if s.Type == SelectRegex {
		_, err := MetricNames(s.Match)
		return "match", err
	}
	if s.Match == "" || len(s.Match) > maxTagBytes {
		return "match", fmt.Errorf("want 1 to %d bytes, got %d", maxTagBytes, len(s.Match))
	}
	return "", nil
}

// MetricNames compiles an expression for the names that Prometheus sees. It fails if the expression is empty, too long,
// too big or uses word boundaries.
func MetricNames(expr string) (*syntax.Prog, error) {
	if expr == "" || len(expr) > maxTagBytes {
		return nil, fmt.Errorf("want an expression of 1 to %d bytes, got %d", maxTagBytes, len(expr))
	}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if programSize(re) > maxMetricProgram {
		return nil, fmt.Errorf("the expression %q is too big: want at most %d steps", shorten(expr), maxMetricProgram)
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil, err
	}
	for _, inst := range prog.Inst {
		if op := syntax.EmptyOp(inst.Arg); inst.Op == syntax.InstEmptyWidth &&
			op&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0 {
			return nil, fmt.Errorf("%q asks for the bounds of words: a name is one word", shorten(expr))
		}
	}
	return prog, nil
}

// maxMetricProgram limits an expression that a proxy matches against each name.
const maxMetricProgram = 500

// Check returns the first problem of an application, and its field.
func (a *MetricApplication) Check() (field string, err error) {
	switch {
	case a.Port == 0 || a.Port > 65535:
		return "port", fmt.Errorf("want 1 to 65535, got %d", a.Port)
	case a.Path != nil && (!path.IsAbs(*a.Path) || strings.ContainsFunc(*a.Path, unprintable) || len(*a.Path) > maxTagBytes):
		return "path", fmt.Errorf("%q is not a path: write /metrics", shorten(*a.Path))
	case a.Name != nil && (*a.Name == "" || strings.ContainsFunc(*a.Name, unprintable) || len(*a.Name) > maxTagBytes):
		return "name", fmt.Errorf("want 1 to %d printable characters without blanks, got %q", maxTagBytes, shorten(*a.Name))
	case a.Address == nil:
		return "", nil
	}
	ip, err := ParseIP(*a.Address)
	if err != nil {
		return "address", fmt.Errorf("%q is not an IP address", shorten(*a.Address))
	}
	if why := reach.NoApplication(ip); why != "" {
		return "address", fmt.Errorf("%s %s: give the application's, or leave it out for 127.0.0.1", *a.Address, why)
	}
	return "", nil
}

// unprintable reports whether a character is a blank or not printable ASCII.
func unprintable(r rune) bool { return r <= ' ' || r > '~' }

// MetricExpression converts an expression for metric names for the proxies' RE2, which lacks some of Go's syntax and
// would answer with an error. It fails if the expression is empty, too long or too big.
func MetricExpression(s string) (string, error) {
	expr, _, err := ValueExpression(s)
	if err == nil && s != "" && len(s) <= maxTagBytes {
		return expr, nil
	}
	if err == nil {
		err = fmt.Errorf("it has %d bytes", len(s))
	}
	return "", fmt.Errorf("%q is not an expression of RE2 of at most %d bytes: %w", shorten(s), maxTagBytes, err)
}

// Check returns the first problem of a backend, and its field, with dots.
func (b *PrometheusBackend) Check() (field string, err error) {
	switch {
	case b.Port != nil && (*b.Port == 0 || *b.Port > 65535):
		return "port", fmt.Errorf("want 1 to 65535, got %d", *b.Port)
	case b.Path != nil && (!path.IsAbs(*b.Path) || strings.ContainsAny(*b.Path, "?#% \x00\r\n") ||
		len(*b.Path) > maxTagBytes):
		return "path", fmt.Errorf("%q is not a path without a query: write /metrics", shorten(*b.Path))
	case b.TLS != nil && b.TLS.Mode != MetricsInTheClear && b.TLS.Mode != MetricsInTheMesh:
		return "tls.mode", fmt.Errorf("want %s or %s, got %q", MetricsInTheClear, MetricsInTheMesh, shorten(b.TLS.Mode))
	}
	return "", nil
}
