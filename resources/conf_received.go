package resources

import "encoding/json"

// RateLimitConf is the `default` of a MeshRateLimit. Its fields have the names that existing control planes give them.
type RateLimitConf struct {
	Local *LocalRateLimit `json:"local,omitempty"`
}

// LocalRateLimit is a limit that each proxy counts for itself.
type LocalRateLimit struct {
	HTTP *HTTPRateLimit `json:"http,omitempty"`
	TCP  *TCPRateLimit  `json:"tcp,omitempty"`
}

// HTTPRateLimit limits requests. Disabled removes the limit of a less specific policy.
type HTTPRateLimit struct {
	Disabled    *bool        `json:"disabled,omitempty"`
	RequestRate *Rate        `json:"requestRate,omitempty"`
	OnRateLimit *OnRateLimit `json:"onRateLimit,omitempty"`
}

// TCPRateLimit limits connections.
type TCPRateLimit struct {
	Disabled       *bool `json:"disabled,omitempty"`
	ConnectionRate *Rate `json:"connectionRate,omitempty"`
}

// Rate allows Num per Interval. Interval is a Go duration string of at least 50 ms.
type Rate struct {
	Num      *uint32 `json:"num,omitempty"`
	Interval *string `json:"interval,omitempty"`
}

// OnRateLimit configures the response to a request over the limit. The default status is 429.
type OnRateLimit struct {
	Status  *uint32        `json:"status,omitempty"`
	Headers *HeaderChanges `json:"headers,omitempty"`
}

// HeaderChanges are headers that a proxy sets, in place of existing ones, or adds to them.
type HeaderChanges struct {
	Set []HeaderValue `json:"set,omitempty"`
	Add []HeaderValue `json:"add,omitempty"`
}

// HeaderValue is one header.
type HeaderValue struct {
	Name  string `json:"name,omitempty"`
	Value string `json:"value,omitempty"`
}

// FaultInjectionConf is the `default` of a MeshFaultInjection: one fault, of one or more kinds.
type FaultInjectionConf struct {
	HTTP []Fault `json:"http,omitempty"`
}

// Fault describes the injected fault. Percentages are numbers from 0 to 100. Fractions are quoted: 5 or "2.5".
type Fault struct {
	Abort             *FaultAbort     `json:"abort,omitempty"`
	Delay             *FaultDelay     `json:"delay,omitempty"`
	ResponseBandwidth *FaultBandwidth `json:"responseBandwidth,omitempty"`
}

// FaultAbort responds in place of the application.
type FaultAbort struct {
	HTTPStatus *uint32         `json:"httpStatus,omitempty"`
	Percentage json.RawMessage `json:"percentage,omitempty" shape:"intOrString"`
}

// FaultDelay delays a request by Value, a Go duration string.
type FaultDelay struct {
	Value      *string         `json:"value,omitempty"`
	Percentage json.RawMessage `json:"percentage,omitempty" shape:"intOrString"`
}

// FaultBandwidth limits the bandwidth of the response body to Limit: a number and one of bps, kbps, Mbps and Gbps (bits
// per second).
type FaultBandwidth struct {
	Limit      *string         `json:"limit,omitempty"`
	Percentage json.RawMessage `json:"percentage,omitempty" shape:"intOrString"`
}
