package xds

import (
	"math"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// breakerConf is the conf of a MeshCircuitBreaker.
type breakerConf struct {
	ConnectionLimits *struct {
		MaxConnectionPools *uint32 `json:"maxConnectionPools"`
		MaxConnections     *uint32 `json:"maxConnections"`
		MaxPendingRequests *uint32 `json:"maxPendingRequests"`
		MaxRetries         *uint32 `json:"maxRetries"`
		MaxRequests        *uint32 `json:"maxRequests"`
	} `json:"connectionLimits"`
	OutlierDetection *outlierConf `json:"outlierDetection"`
}

// outlierConf says when an endpoint is left alone for a while.
type outlierConf struct {
	Disabled                    *bool    `json:"disabled"`
	Interval                    *string  `json:"interval"`
	BaseEjectionTime            *string  `json:"baseEjectionTime"`
	MaxEjectionPercent          *uint32  `json:"maxEjectionPercent"`
	SplitExternalAndLocalErrors *bool    `json:"splitExternalAndLocalErrors"`
	HealthyPanicThreshold       *percent `json:"healthyPanicThreshold"`
	Detectors                   *struct {
		TotalFailures       *struct{ Consecutive *uint32 } `json:"totalFailures"`
		GatewayFailures     *struct{ Consecutive *uint32 } `json:"gatewayFailures"`
		LocalOriginFailures *struct{ Consecutive *uint32 } `json:"localOriginFailures"`
		SuccessRate         *struct {
			MinimumHosts            *uint32  `json:"minimumHosts"`
			RequestVolume           *uint32  `json:"requestVolume"`
			StandardDeviationFactor *percent `json:"standardDeviationFactor"`
		} `json:"successRate"`
		FailurePercentage *struct {
			MinimumHosts  *uint32 `json:"minimumHosts"`
			RequestVolume *uint32 `json:"requestVolume"`
			Threshold     *uint32 `json:"threshold"`
		} `json:"failurePercentage"`
	} `json:"detectors"`
}

// breaker sets what a MeshCircuitBreaker says of the backend.
func (s *sender) breaker(c *clusterv3.Cluster, b *backend) {
	conf := decode[breakerConf](s, s.breakers.For(b.key()))
	if l := conf.ConnectionLimits; l != nil {
		t := c.CircuitBreakers.Thresholds[0]
		for field, limit := range map[**wrapperspb.UInt32Value]*uint32{
			&t.MaxConnectionPools: l.MaxConnectionPools, &t.MaxConnections: l.MaxConnections, &t.MaxPendingRequests: l.MaxPendingRequests,
			&t.MaxRetries: l.MaxRetries, &t.MaxRequests: l.MaxRequests,
		} {
			if limit != nil {
				*field = wrapperspb.UInt32(*limit)
			}
		}
	}
	o := conf.OutlierDetection
	if o == nil {
		c.OutlierDetection = unaskedOutliers()
	} else if !(o.Disabled != nil && *o.Disabled) {
		c.OutlierDetection = o.envoy()
		if o.HealthyPanicThreshold != nil {
			lbConfig(c).HealthyPanicThreshold = &typev3.Percent{Value: min(float64(*o.HealthyPanicThreshold), 100)}
		}
	}
}

// envoy: only the detectors that the conf names are on. Envoy's own defaults would eject on others too.
func (o *outlierConf) envoy() *clusterv3.OutlierDetection {
	off := wrapperspb.UInt32(0)
	out := &clusterv3.OutlierDetection{
		Interval: durationOf(optional(o.Interval)), BaseEjectionTime: durationOf(optional(o.BaseEjectionTime)),
		MaxEjectionPercent:             uint32Of(capped(o.MaxEjectionPercent, 100)),
		SplitExternalLocalOriginErrors: o.SplitExternalAndLocalErrors != nil && *o.SplitExternalAndLocalErrors,
		EnforcingConsecutive_5Xx:       off, EnforcingConsecutiveGatewayFailure: off, EnforcingConsecutiveLocalOriginFailure: off,
		EnforcingSuccessRate: off, EnforcingLocalOriginSuccessRate: off, EnforcingFailurePercentage: off,
	}
	o.detectors(out)
	return out
}

func (o *outlierConf) detectors(out *clusterv3.OutlierDetection) {
	on := wrapperspb.UInt32(100)
	d := o.Detectors
	if d == nil {
		return
	}
	if f := d.TotalFailures; f != nil {
		out.EnforcingConsecutive_5Xx, out.Consecutive_5Xx = on, uint32Of(f.Consecutive)
	}
	if f := d.GatewayFailures; f != nil {
		out.EnforcingConsecutiveGatewayFailure, out.ConsecutiveGatewayFailure = on, uint32Of(f.Consecutive)
	}
	if f := d.LocalOriginFailures; f != nil {
		out.EnforcingConsecutiveLocalOriginFailure, out.ConsecutiveLocalOriginFailure = on, uint32Of(f.Consecutive)
	}
	if f := d.SuccessRate; f != nil {
		out.EnforcingSuccessRate, out.EnforcingLocalOriginSuccessRate = on, on
		out.SuccessRateMinimumHosts, out.SuccessRateRequestVolume = uint32Of(f.MinimumHosts), uint32Of(f.RequestVolume)
		if f.StandardDeviationFactor != nil {
			out.SuccessRateStdevFactor = wrapperspb.UInt32(uint32(min(max(float64(*f.StandardDeviationFactor)*1000, 0), math.MaxUint32)))
		}
	}
	if f := d.FailurePercentage; f != nil {
		out.EnforcingFailurePercentage = on
		out.FailurePercentageMinimumHosts, out.FailurePercentageRequestVolume = uint32Of(f.MinimumHosts), uint32Of(f.RequestVolume)
		out.FailurePercentageThreshold = uint32Of(capped(f.Threshold, 100))
	}
}

func capped(n *uint32, most uint32) *uint32 {
	if n == nil || *n <= most {
		return n
	}
	return &most
}
