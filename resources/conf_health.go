package resources

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// HealthCheckConf is the `default` of a MeshHealthCheck, in Kuma's format. Durations are Go duration strings. Zero
// values stand for Kuma's defaults, which HealthCheckDefaults are.
type HealthCheckConf struct {
	// Interval is the time between two checks of an endpoint, Timeout the time that one waits for its answer.
	Interval *string `json:"interval,omitempty"`
	Timeout  *string `json:"timeout,omitempty"`
	// UnhealthyThreshold is the number of failed checks after which an endpoint gets no more requests, HealthyThreshold
	// the number of successful ones after which it gets them again. The first check of an endpoint decides alone.
	UnhealthyThreshold *uint32 `json:"unhealthyThreshold,omitempty"`
	HealthyThreshold   *uint32 `json:"healthyThreshold,omitempty"`
	// InitialJitter, IntervalJitter and IntervalJitterPercent spread checks over time.
	InitialJitter         *string `json:"initialJitter,omitempty"`
	IntervalJitter        *string `json:"intervalJitter,omitempty"`
	IntervalJitterPercent *uint32 `json:"intervalJitterPercent,omitempty"`
	// HealthyPanicThreshold is the percentage of healthy endpoints below which all endpoints get requests or, with
	// FailTrafficOnPanic, none. Fractions are quoted: 5 or "2.5".
	HealthyPanicThreshold json.RawMessage `json:"healthyPanicThreshold,omitempty" shape:"intOrString"`
	FailTrafficOnPanic    *bool           `json:"failTrafficOnPanic,omitempty"`
	// NoTrafficInterval is the Interval for a service that has had no requests.
	NoTrafficInterval *string `json:"noTrafficInterval,omitempty"`
	// EventLogPath is a file on the machine of each caller, or /dev/stdout: a line for each endpoint that becomes healthy or
	// unhealthy and, with AlwaysLogHealthCheckFailures, for each check that fails.
	EventLogPath                 *string `json:"eventLogPath,omitempty"`
	AlwaysLogHealthCheckFailures *bool   `json:"alwaysLogHealthCheckFailures,omitempty"`
	// ReuseConnection keeps a connection between checks.
	ReuseConnection *bool            `json:"reuseConnection,omitempty"`
	TCP             *TCPHealthCheck  `json:"tcp,omitempty"`
	HTTP            *HTTPHealthCheck `json:"http,omitempty"`
	GRPC            *GRPCHealthCheck `json:"grpc,omitempty"`
}

// TCPHealthCheck connects and, with Send, sends bytes and waits for those of Receive, in this order. Both are base64.
type TCPHealthCheck struct {
	Disabled *bool    `json:"disabled,omitempty"`
	Send     *string  `json:"send,omitempty"`
	Receive  []string `json:"receive,omitempty"`
}

// HTTPHealthCheck requests Path with GET, "/" unless set. Statuses other than ExpectedStatuses, 200 unless set, are
// failures.
type HTTPHealthCheck struct {
	Disabled            *bool          `json:"disabled,omitempty"`
	Path                *string        `json:"path,omitempty"`
	RequestHeadersToAdd *HeaderChanges `json:"requestHeadersToAdd,omitempty"`
	ExpectedStatuses    []uint32       `json:"expectedStatuses,omitempty"`
}

// GRPCHealthCheck calls grpc.health.v1 for ServiceName, with Authority.
type GRPCHealthCheck struct {
	Disabled    *bool   `json:"disabled,omitempty"`
	ServiceName *string `json:"serviceName,omitempty"`
	Authority   *string `json:"authority,omitempty"`
}

// Defaults of a MeshHealthCheck.
const (
	HealthCheckInterval           = time.Minute
	HealthCheckTimeout            = 15 * time.Second
	HealthCheckUnhealthyThreshold = 5
	HealthCheckHealthyThreshold   = 1
)

const (
	maxHealthPayload = 64 << 10
	maxHealthItems   = 64
	maxHealthText    = 1024
	// LeastHealthInterval keeps health checks from overloading a service.
	LeastHealthInterval = 100 * time.Millisecond
	// MostHealthWait limits the timeout and the initial jitter. Until the first checks of a changed cluster are over, a
	// proxy applies no other cluster updates, not even new clusters.
	MostHealthWait = 30 * time.Second
)

// healthValues are the valid values of fields of a HealthCheckConf, in the form of confValues.
var healthValues = map[string]valueKind{
	"interval": period, "timeout": period, "noTrafficInterval": period, "initialJitter": duration,
	"intervalJitter":     duration,
	"unhealthyThreshold": positive, "healthyThreshold": positive, "intervalJitterPercent": count,
	"healthyPanicThreshold": percentage,
	"failTrafficOnPanic":    flag, "reuseConnection": flag, "tcp.disabled": flag, "http.disabled": flag,
	"grpc.disabled": flag,
	"tcp.send":      payload, "tcp.receive[]": payload,
	"http.path":                            texts(HealthPath, "a path that begins with /, of printable characters"),
	"http.expectedStatuses[]":              status,
	"http.requestHeadersToAdd.set[].name":  texts(WritableHeader, "the name of a header that may be written"),
	"http.requestHeadersToAdd.add[].name":  texts(WritableHeader, "the name of a header that may be written"),
	"http.requestHeadersToAdd.set[].value": texts(HeaderText, "at most 4096 bytes in one line"),
	"http.requestHeadersToAdd.add[].value": texts(HeaderText, "at most 4096 bytes in one line"),
	"grpc.serviceName":                     texts(HealthText, "at most 1024 printable characters"),
	"grpc.authority":                       texts(HealthText, "at most 1024 printable characters"),
	"alwaysLogHealthCheckFailures":         flag,
	"eventLogPath":                         texts(LogPath, "the absolute path of a file, or /dev/stdout"),
}

func payload(value any) string {
	text, _ := value.(string)
	if raw, err := base64.StdEncoding.DecodeString(text); err != nil || len(raw) == 0 || len(raw) > maxHealthPayload {
		return fmt.Sprintf("want 1 to %d bytes in base64, got %s", maxHealthPayload, written(value))
	}
	return ""
}

func status(value any) string {
	if n, ok := value.(float64); !ok || n < 100 || n > 599 {
		return "want a status from 100 to 599, got " + written(value)
	}
	return ""
}

// texts accepts the values that a function accepts.
func texts(takes func(string) bool, want string) valueKind {
	return func(value any) string {
		if text, ok := value.(string); ok && takes(text) {
			return ""
		}
		return "want " + want + ", got " + written(value)
	}
}

// healthCheck checks the limits of a MeshHealthCheck; healthValues checks its values. The code that configures proxies
// skips what a peer sent and Envoy rejects.
func (v *validation) healthCheck(c *HealthCheckConf, at *fieldPath) {
	if c.WritesFile() && RoleOf(v.resource, v.home.systemNamespace()) == RoleProducer {
		v.fail(at.field("eventLogPath"), "%q would be written on the machines of the service's clients: use /dev/stdout, or have the operator write it",
			shorten(*c.EventLogPath))
	}
	if c.TCP != nil {
		n := 0
		for _, text := range c.TCP.Receive {
			n += base64.StdEncoding.DecodedLen(len(text))
		}
		if n > 2*maxHealthPayload {
			v.fail(at.field("tcp").field("receive"), "want at most %d bytes in all, got %d: a proxy has a copy for each service", 2*maxHealthPayload, n)
		}
	}
	if v.peer {
		return
	}
	for name, value := range map[string]*string{"interval": c.Interval, "noTrafficInterval": c.NoTrafficInterval} {
		if value == nil {
			continue
		}
		if d, err := time.ParseDuration(*value); err == nil && d >= time.Millisecond && d < LeastHealthInterval {
			v.fail(at.field(name), "want at least %s, got %s", LeastHealthInterval, shorten(*value))
		}
	}
	for name, value := range map[string]*string{"timeout": c.Timeout, "initialJitter": c.InitialJitter} {
		if value == nil {
			continue
		}
		if d, err := time.ParseDuration(*value); err == nil && d > MostHealthWait {
			v.fail(at.field(name), "want at most %s, because a proxy takes no new clusters until the first checks are over, got %s", MostHealthWait, shorten(*value))
		}
	}
	if c.TCP != nil && len(c.TCP.Receive) > maxHealthItems {
		v.fail(at.field("tcp").field("receive"), "want at most %d, got %d", maxHealthItems, len(c.TCP.Receive))
	}
	if c.HTTP == nil {
		return
	}
	if n := len(c.HTTP.ExpectedStatuses); n > maxHealthItems {
		v.fail(at.field("http").field("expectedStatuses"), "want at most %d, got %d", maxHealthItems, n)
	}
	if h := c.HTTP.RequestHeadersToAdd; h != nil {
		for name, headers := range map[string][]HeaderValue{"set": h.Set, "add": h.Add} {
			v.headerCount(headers, at.field("http").field("requestHeadersToAdd").field(name))
			for i := range headers {
				if headers[i].Name == "" {
					v.fail(at.field("http").field("requestHeadersToAdd").field(name).item(i).field("name"), "is required")
				}
			}
		}
	}
}

// WritesFile reports whether the proxy writes a file on its machine, other than its own output.
func (c *HealthCheckConf) WritesFile() bool {
	return c.EventLogPath != nil && *c.EventLogPath != "/dev/stdout" && *c.EventLogPath != "/dev/stderr"
}

// LogPath reports whether a proxy may write a log to a path.
func LogPath(path string) bool { return checkLogPath(path) == nil }

// HealthPath reports whether Envoy accepts a path for its checks.
func HealthPath(path string) bool { return strings.HasPrefix(path, "/") && HealthText(path) }

// HealthText reports whether Envoy accepts a text for its checks.
func HealthText(text string) bool {
	return len(text) <= maxHealthText && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}
