package resources

// RetryConf is the `default` of a MeshRetry, in Kuma's format. Durations are Go duration strings.
type RetryConf struct {
	TCP  *TCPRetry     `json:"tcp,omitempty"`
	HTTP *RequestRetry `json:"http,omitempty"`
	GRPC *RequestRetry `json:"grpc,omitempty"`
}

// TCPRetry tries a connection to a backend MaxConnectAttempt times.
type TCPRetry struct {
	MaxConnectAttempt *uint32 `json:"maxConnectAttempt,omitempty"`
}

// RequestRetry sets which requests are sent again, how often, and where. RetryOn holds items that the function RetryOn
// reads.
type RequestRetry struct {
	NumRetries               *uint32             `json:"numRetries,omitempty"`
	PerTryTimeout            *string             `json:"perTryTimeout,omitempty"`
	BackOff                  *RetryBackOff       `json:"backOff,omitempty"`
	RateLimitedBackOff       *RateLimitedBackOff `json:"rateLimitedBackOff,omitempty"`
	RetryOn                  []string            `json:"retryOn,omitempty"`
	RetriableRequestHeaders  []RouteValueMatch   `json:"retriableRequestHeaders,omitempty"`
	RetriableResponseHeaders []RouteValueMatch   `json:"retriableResponseHeaders,omitempty"`
	// HostSelection sets which endpoints a retry excludes. Without it, a retry excludes those that already had the
	// request, and priorities that failed. HostSelectionMaxAttempts is the number of attempts to find another one, 5
	// unless set.
	HostSelection            []HostSelection `json:"hostSelection,omitempty"`
	HostSelectionMaxAttempts *uint32         `json:"hostSelectionMaxAttempts,omitempty"`
}

// RetryBackOff is the pause between attempts, which doubles up to MaxInterval.
type RetryBackOff struct {
	BaseInterval *string `json:"baseInterval,omitempty"`
	MaxInterval  *string `json:"maxInterval,omitempty"`
}

// RateLimitedBackOff is the pause that a header of the answer asks for, at most MaxInterval.
type RateLimitedBackOff struct {
	MaxInterval  *string       `json:"maxInterval,omitempty"`
	ResetHeaders []ResetHeader `json:"resetHeaders,omitempty"`
}

// ResetHeader names the header. Format is Seconds or UnixTimestamp.
type ResetHeader struct {
	Name   string `json:"name,omitempty"`
	Format string `json:"format,omitempty"`
}

// Predicates of a HostSelection.
const (
	OmitPreviousHosts      = "OmitPreviousHosts"
	OmitPreviousPriorities = "OmitPreviousPriorities"
	OmitHostsWithTags      = "OmitHostsWithTags"
)

// HostSelection excludes endpoints. UpdateFrequency belongs to OmitPreviousPriorities: after this number of attempts
// the failed priorities are excluded, 2 unless set. Tags belong to OmitHostsWithTags; they configure no proxy.
type HostSelection struct {
	Predicate       string            `json:"predicate,omitempty"`
	Tags            map[string]string `json:"tags,omitempty"`
	UpdateFrequency *uint32           `json:"updateFrequency,omitempty"`
}

// retry checks that the headers of a MeshRetry have names. retryValues checks its values.
func (v *validation) retry(c *RetryConf, at *fieldPath) {
	if v.peer {
		return
	}
	for protocol, r := range map[string]*RequestRetry{"http": c.HTTP, "grpc": c.GRPC} {
		if r == nil {
			continue
		}
		at := at.field(protocol)
		required := func(name string, at *fieldPath) {
			if name == "" {
				v.fail(at.field("name"), "is required")
			}
		}
		for i := range r.RetriableRequestHeaders {
			required(r.RetriableRequestHeaders[i].Name, at.field("retriableRequestHeaders").item(i))
		}
		for i := range r.RetriableResponseHeaders {
			required(r.RetriableResponseHeaders[i].Name, at.field("retriableResponseHeaders").item(i))
		}
		if b := r.BackOff; b != nil {
			v.atLeast(b.MaxInterval, b.BaseInterval, "baseInterval", at.field("backOff").field("maxInterval"))
		}
		if b := r.RateLimitedBackOff; b != nil {
			for i := range b.ResetHeaders {
				required(b.ResetHeaders[i].Name, at.field("rateLimitedBackOff").field("resetHeaders").item(i))
			}
		}
	}
}
