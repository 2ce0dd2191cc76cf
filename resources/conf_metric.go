package resources

import (
	"fmt"
	"net"
	"path"
	"strings"
)

// MetricConf is the `default` of a MeshMetric, in Kuma's format.
type MetricConf struct {
	Sidecar *MetricSidecar `json:"sidecar,omitempty"`
	// Applications would add their metrics to the proxy's.
	Applications []MetricApplication `json:"applications,omitempty"`
	Backends     []MetricBackend     `json:"backends,omitempty"`
}

// MetricSidecar selects the proxy's metrics that are exposed. IncludeUnused also exposes those that were never counted.
// Regex matches the names that Envoy gives them, with dots.
type MetricSidecar struct {
	Regex         *string         `json:"regex,omitempty"`
	IncludeUnused *bool           `json:"includeUnused,omitempty"`
	Profiles      *MetricProfiles `json:"profiles,omitempty"`
}

// MetricProfiles shows what one of AppendProfiles has.
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

// MetricSelector selects metrics by their names. Type is Prefix, Exact or Regex.
type MetricSelector struct {
	Type  string `json:"type,omitempty"`
	Match string `json:"match,omitempty"`
}

// MetricApplication is the endpoint of an application's metrics.
type MetricApplication struct {
	Name    *string `json:"name,omitempty"`
	Path    *string `json:"path,omitempty"`
	Address *string `json:"address,omitempty"`
	Port    uint32  `json:"port,omitempty"`
}

// BackendPrometheus is a backend that asks for metrics.
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

// MetricPush is a collector to which metrics would be sent.
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
	if v.peer {
		return // where proxies are configured, what does not hold is left out
	}
	if c.Sidecar != nil {
		v.metricSidecar(c.Sidecar, at.field("sidecar"))
	}
	for i := range c.Applications {
		v.metricApplication(&c.Applications[i], at.field("applications").item(i))
	}
	prometheus := 0
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
		for i, one := range list {
			at := at.field(name).item(i)
			if one.Type != "Prefix" && one.Type != "Exact" && one.Type != "Regex" {
				v.fail(at.field("type"), "want Prefix, Exact or Regex, got %q", shorten(one.Type))
			}
			if one.Match == "" {
				v.fail(at.field("match"), "is required")
			}
		}
	}
}

func (v *validation) metricApplication(a *MetricApplication, at *fieldPath) {
	if a.Port == 0 || a.Port > 65535 {
		v.fail(at.field("port"), "want 1 to 65535")
	}
	if a.Path != nil && !strings.HasPrefix(*a.Path, "/") {
		v.fail(at.field("path"), "%q does not begin with /", shorten(*a.Path))
	}
	if a.Address != nil && net.ParseIP(*a.Address) == nil {
		v.fail(at.field("address"), "%q is not an IP address", shorten(*a.Address))
	}
}

// MetricExpression is an expression for names of metrics as the RE2 of proxies takes it, which does not know all that
// Go's does and would answer nothing but an error. One that is empty, too long or too big is an error.
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

// Check reports the first thing that is wrong with a backend, and the field, with dots.
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
