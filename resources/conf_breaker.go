package resources

import (
	"encoding/json"
	"fmt"
	"time"
)

// BreakerConf is the `default` of a MeshCircuitBreaker, in Kuma's format. Durations are Go duration strings.
type BreakerConf struct {
	ConnectionLimits *ConnectionLimits `json:"connectionLimits,omitempty"`
	OutlierDetection *OutlierDetection `json:"outlierDetection,omitempty"`
}

// ConnectionLimits apply to each proxy by itself; nil means no limit.
type ConnectionLimits struct {
	MaxConnectionPools *uint32 `json:"maxConnectionPools,omitempty"`
	MaxConnections     *uint32 `json:"maxConnections,omitempty"`
	MaxPendingRequests *uint32 `json:"maxPendingRequests,omitempty"`
	MaxRetries         *uint32 `json:"maxRetries,omitempty"`
	MaxRequests        *uint32 `json:"maxRequests,omitempty"`
}

// OutlierDetection sets when the proxy ejects an endpoint for a while. Numbers with fractions are quoted: 5 or "2.5".
// MaxEjectionTime is Causeway's own field: zones of Kuma ignore it.
type OutlierDetection struct {
	Disabled                    *bool             `json:"disabled,omitempty"`
	Interval                    *string           `json:"interval,omitempty"`
	BaseEjectionTime            *string           `json:"baseEjectionTime,omitempty"`
	MaxEjectionTime             *string           `json:"maxEjectionTime,omitempty"`
	MaxEjectionPercent          *uint32           `json:"maxEjectionPercent,omitempty"`
	SplitExternalAndLocalErrors *bool             `json:"splitExternalAndLocalErrors,omitempty"`
	HealthyPanicThreshold       json.RawMessage   `json:"healthyPanicThreshold,omitempty" shape:"intOrString"`
	Detectors                   *OutlierDetectors `json:"detectors,omitempty"`
}

// OutlierDetectors are the reasons to eject an endpoint; one that is nil ejects none.
type OutlierDetectors struct {
	TotalFailures       *ConsecutiveFailures  `json:"totalFailures,omitempty"`
	GatewayFailures     *ConsecutiveFailures  `json:"gatewayFailures,omitempty"`
	LocalOriginFailures *ConsecutiveFailures  `json:"localOriginFailures,omitempty"`
	SuccessRate         *SuccessRateDetector  `json:"successRate,omitempty"`
	FailurePercentage   *FailureShareDetector `json:"failurePercentage,omitempty"`
}

// LeastSweep keeps proxies from doing nothing but judging the endpoints of a service, which its producer may ask of its
// clients'.
const LeastSweep = 100 * time.Millisecond

// sweeps is a period of at least LeastSweep.
func sweeps(value any) string {
	if problem := period(value); problem != "" {
		return problem
	}
	text, _ := value.(string)
	if d, err := time.ParseDuration(text); err != nil || d < LeastSweep {
		return fmt.Sprintf("want at least %s, got %s", LeastSweep, written(value))
	}
	return ""
}

// breaker checks what the values of a MeshCircuitBreaker are to each other. Merged policies may still differ: then the
// proxy ejects for the first time as long as baseEjectionTime says.
func (v *validation) breaker(c *BreakerConf, at *fieldPath) {
	if o := c.OutlierDetection; o != nil && !v.peer {
		v.atLeast(o.MaxEjectionTime, o.BaseEjectionTime, "baseEjectionTime", at.field("outlierDetection").field("maxEjectionTime"))
	}
}

// atLeast refuses a duration that is shorter than another of the same conf.
func (v *validation) atLeast(most, least *string, name string, at *fieldPath) {
	if most == nil || least == nil {
		return
	}
	m, errM := time.ParseDuration(*most)
	l, errL := time.ParseDuration(*least)
	if errM == nil && errL == nil && m > 0 && m < l {
		v.fail(at, "want at least the %s, %s, got %s", name, shorten(*least), shorten(*most))
	}
}

// ConsecutiveFailures ejects an endpoint after so many failures in a row.
type ConsecutiveFailures struct {
	Consecutive *uint32 `json:"consecutive,omitempty"`
}

// SuccessRateDetector compares endpoints with each other.
type SuccessRateDetector struct {
	MinimumHosts            *uint32         `json:"minimumHosts,omitempty"`
	RequestVolume           *uint32         `json:"requestVolume,omitempty"`
	StandardDeviationFactor json.RawMessage `json:"standardDeviationFactor,omitempty" shape:"intOrString"`
}

// FailureShareDetector ejects endpoints that fail more than Threshold percent of requests.
type FailureShareDetector struct {
	MinimumHosts  *uint32 `json:"minimumHosts,omitempty"`
	RequestVolume *uint32 `json:"requestVolume,omitempty"`
	Threshold     *uint32 `json:"threshold,omitempty"`
}

// LimitsInbounds reports whether a policy is a MeshCircuitBreaker for inbound traffic.
func LimitsInbounds(r *Resource) bool {
	if r.Type != TypeMeshCircuitBreaker {
		return false
	}
	p, err := SpecAs[Policy](r)
	return err == nil && (len(p.From) > 0 || len(p.Rules) > 0 || len(p.Default) > 0)
}
