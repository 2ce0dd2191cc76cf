package resources

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// HealthCheckConf is the `default` of a MeshHealthCheck, in Kuma's format. Durations are Go duration strings. Zero
// values stand for Kuma's defaults, which HealthCheckDefaults are.
type HealthCheckConf struct {
	// Interval is between two checks of an endpoint, Timeout how long one waits for its answer.
	Interval *string `json:"interval,omitempty"`
	Timeout  *string `json:"timeout,omitempty"`
	// UnhealthyThreshold is how many checks must fail before an endpoint gets no more requests, HealthyThreshold how many
	// must succeed before it gets them again. The first check of an endpoint decides alone.
	UnhealthyThreshold *uint32 `json:"unhealthyThreshold,omitempty"`
	HealthyThreshold   *uint32 `json:"healthyThreshold,omitempty"`
	// InitialJitter, IntervalJitter and IntervalJitterPercent spread checks over time.
	InitialJitter         *string `json:"initialJitter,omitempty"`
	IntervalJitter        *string `json:"intervalJitter,omitempty"`
	IntervalJitterPercent *uint32 `json:"intervalJitterPercent,omitempty"`
	// HealthyPanicThreshold is the percentage of healthy endpoints below which all are asked, or with FailTrafficOnPanic
	// none. Fractions are quoted: 5 or "2.5".
	HealthyPanicThreshold json.RawMessage `json:"healthyPanicThreshold,omitempty" shape:"intOrString"`
	FailTrafficOnPanic    *bool           `json:"failTrafficOnPanic,omitempty"`
	// NoTrafficInterval is Interval for a service that was never asked for.
	NoTrafficInterval *string `json:"noTrafficInterval,omitempty"`
	// EventLogPath and AlwaysLogHealthCheckFailures write files on the callers' machines: no proxy is configured by them.
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

// HTTPHealthCheck asks for Path with GET, "/" unless set. Other statuses than ExpectedStatuses, 200 unless set, are failures.
type HTTPHealthCheck struct {
	Disabled            *bool          `json:"disabled,omitempty"`
	Path                *string        `json:"path,omitempty"`
	RequestHeadersToAdd *HeaderChanges `json:"requestHeadersToAdd,omitempty"`
	ExpectedStatuses    []uint32       `json:"expectedStatuses,omitempty"`
}

// GRPCHealthCheck asks grpc.health.v1 for ServiceName, with Authority.
type GRPCHealthCheck struct {
	Disabled    *bool   `json:"disabled,omitempty"`
	ServiceName *string `json:"serviceName,omitempty"`
	Authority   *string `json:"authority,omitempty"`
}

// What holds where a MeshHealthCheck does not say.
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
	// leastHealthInterval keeps the callers of a service from being its load.
	leastHealthInterval = 100 * time.Millisecond
)

// healthCheck checks a MeshHealthCheck. What a peer sent and Envoy does not take is left out where proxies are configured.
func (v *validation) healthCheck(c *HealthCheckConf, at *fieldPath) {
	if v.peer {
		return
	}
	for _, one := range []struct {
		name  string
		value *string
		least time.Duration
	}{
		{"interval", c.Interval, leastHealthInterval}, {"timeout", c.Timeout, time.Millisecond}, {"noTrafficInterval", c.NoTrafficInterval, leastHealthInterval},
		{"initialJitter", c.InitialJitter, 0}, {"intervalJitter", c.IntervalJitter, 0},
	} {
		if one.value == nil {
			continue
		}
		if d, err := time.ParseDuration(*one.value); err != nil || d < one.least {
			v.fail(at.field(one.name), "want a duration of at least %s, such as 10s, got %q", one.least, shorten(*one.value))
		}
	}
	for name, n := range map[string]*uint32{"healthyThreshold": c.HealthyThreshold, "unhealthyThreshold": c.UnhealthyThreshold} {
		if n != nil && *n == 0 {
			v.fail(at.field(name), "want at least 1, got 0")
		}
	}
	if c.TCP != nil {
		v.tcpHealthCheck(c.TCP, at.field("tcp"))
	}
	if c.HTTP != nil {
		v.httpHealthCheck(c.HTTP, at.field("http"))
	}
	if c.GRPC != nil {
		v.healthText(c.GRPC.ServiceName, at.field("grpc").field("serviceName"))
		v.healthText(c.GRPC.Authority, at.field("grpc").field("authority"))
	}
}

func (v *validation) tcpHealthCheck(c *TCPHealthCheck, at *fieldPath) {
	payload := func(text string, at *fieldPath) {
		if raw, err := base64.StdEncoding.DecodeString(text); err != nil || len(raw) == 0 || len(raw) > maxHealthPayload {
			v.fail(at, "want 1 to %d bytes in base64", maxHealthPayload)
		}
	}
	if c.Send != nil {
		payload(*c.Send, at.field("send"))
	}
	if len(c.Receive) > maxHealthItems {
		v.fail(at.field("receive"), "want at most %d, got %d", maxHealthItems, len(c.Receive))
	}
	for i, text := range c.Receive {
		payload(text, at.field("receive").item(i))
	}
}

func (v *validation) httpHealthCheck(c *HTTPHealthCheck, at *fieldPath) {
	if c.Path != nil && !HealthPath(*c.Path) {
		v.fail(at.field("path"), "want a path that begins with /, of printable characters")
	}
	if len(c.ExpectedStatuses) > maxHealthItems {
		v.fail(at.field("expectedStatuses"), "want at most %d, got %d", maxHealthItems, len(c.ExpectedStatuses))
	}
	for i, status := range c.ExpectedStatuses {
		if status < 100 || status > 599 {
			v.fail(at.field("expectedStatuses").item(i), "want a status from 100 to 599, got %d", status)
		}
	}
	v.headerChanges(c.RequestHeadersToAdd, at.field("requestHeadersToAdd"))
}

// HealthPath reports whether Envoy takes a path for its checks.
func HealthPath(path string) bool {
	return strings.HasPrefix(path, "/") && len(path) <= maxHealthText &&
		!strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r > '~' })
}

func (v *validation) healthText(text *string, at *fieldPath) {
	if text != nil && (len(*text) > maxHealthText || strings.ContainsFunc(*text, func(r rune) bool { return r <= ' ' || r > '~' })) {
		v.fail(at, "want at most %d printable characters", maxHealthText)
	}
}
