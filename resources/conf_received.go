package resources

import "encoding/json"

// RateLimitConf is the `default` of a MeshRateLimit. Its fields have the names that existing control planes give them.
type RateLimitConf struct {
	Local *LocalRateLimit `json:"local,omitempty"`
}

// LocalRateLimit is counted by each proxy for itself.
type LocalRateLimit struct {
	HTTP *HTTPRateLimit `json:"http,omitempty"`
	TCP  *TCPRateLimit  `json:"tcp,omitempty"`
}

// HTTPRateLimit limits requests. Disabled takes back what a less specific policy limits.
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

// Rate is Num in each Interval, which is a Go duration string of at least 50 ms.
type Rate struct {
	Num      *uint32 `json:"num,omitempty"`
	Interval *string `json:"interval,omitempty"`
}

// OnRateLimit says how a request over the limit is answered: by default with 429.
type OnRateLimit struct {
	Status  *uint32           `json:"status,omitempty"`
	Headers *RateLimitHeaders `json:"headers,omitempty"`
}

// RateLimitHeaders are headers of the answer to a request over the limit.
type RateLimitHeaders struct {
	Set []RateLimitHeader `json:"set,omitempty"`
	Add []RateLimitHeader `json:"add,omitempty"`
}

// RateLimitHeader is one header.
type RateLimitHeader struct {
	Name  string `json:"name,omitempty"`
	Value string `json:"value,omitempty"`
}

// FaultInjectionConf is the `default` of a MeshFaultInjection: one fault, of one or more kinds.
type FaultInjectionConf struct {
	HTTP []Fault `json:"http,omitempty"`
}

// Fault is what goes wrong. Percentages are numbers from 0 to 100, in quotes where they are not whole: 5 or "2.5".
type Fault struct {
	Abort             *FaultAbort     `json:"abort,omitempty"`
	Delay             *FaultDelay     `json:"delay,omitempty"`
	ResponseBandwidth *FaultBandwidth `json:"responseBandwidth,omitempty"`
}

// FaultAbort answers in the application's place.
type FaultAbort struct {
	HTTPStatus *uint32         `json:"httpStatus,omitempty"`
	Percentage json.RawMessage `json:"percentage,omitempty" shape:"intOrString"`
}

// FaultDelay holds a request back for Value, a Go duration string.
type FaultDelay struct {
	Value      *string         `json:"value,omitempty"`
	Percentage json.RawMessage `json:"percentage,omitempty" shape:"intOrString"`
}

// FaultBandwidth slows the answer's body down to Limit: a number and one of bps, kbps, Mbps and Gbps, bits a second.
type FaultBandwidth struct {
	Limit      *string         `json:"limit,omitempty"`
	Percentage json.RawMessage `json:"percentage,omitempty" shape:"intOrString"`
}
