package xds

import (
	"cmp"
	"math"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
)

// defaultEjection is how long Envoy first ejects an endpoint, unless a conf sets it.
const defaultEjection = 30 * time.Second

// breaker sets the limits and detectors of the backend's MeshCircuitBreaker.
func (s *sender) breaker(c *clusterv3.Cluster, b *backend) {
	conf := decode[resources.BreakerConf](s, s.breakers.For(b.key()))
	c.CircuitBreakers = thresholds(conf.ConnectionLimits)
	o := cmp.Or(conf.OutlierDetection, s.unasked().breaker.OutlierDetection)
	if o != nil && !(o.Disabled != nil && *o.Disabled) {
		c.OutlierDetection = outliers(o)
		if panics, ok := percentOf(o.HealthyPanicThreshold); ok && panics <= 100 {
			lbConfig(c).HealthyPanicThreshold = &typev3.Percent{Value: panics}
		}
	}
}

// thresholds returns the limits of a cluster. The capacity of the application is a matter for the application or a
// policy; Envoy's default of 1,024 requests would surprise users.
func thresholds(l *resources.ConnectionLimits) *clusterv3.CircuitBreakers {
	most := wrapperspb.UInt32(math.MaxUint32)
	t := &clusterv3.CircuitBreakers_Thresholds{MaxConnections: most, MaxPendingRequests: most, MaxRequests: most,
		MaxRetries: most}
	if l == nil {
		l = &resources.ConnectionLimits{}
	}
	for field, limit := range map[**wrapperspb.UInt32Value]*uint32{
		&t.MaxConnectionPools: l.MaxConnectionPools, &t.MaxConnections: l.MaxConnections,
		&t.MaxPendingRequests: l.MaxPendingRequests,
		&t.MaxRetries:         l.MaxRetries, &t.MaxRequests: l.MaxRequests,
	} {
		if limit != nil {
			*field = wrapperspb.UInt32(*limit)
		}
	}
	return &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{t}}
}

// outliers enables only the detectors that the conf names. Envoy's defaults would also eject on others.
func outliers(o *resources.OutlierDetection) *clusterv3.OutlierDetection {
	off := wrapperspb.UInt32(0)
	out := &clusterv3.OutlierDetection{
		Interval: durationOf(period(o.Interval)), BaseEjectionTime: durationOf(period(o.BaseEjectionTime)),
		MaxEjectionPercent:             uint32Of(percentage(o.MaxEjectionPercent)),
		SplitExternalLocalOriginErrors: o.SplitExternalAndLocalErrors != nil && *o.SplitExternalAndLocalErrors,
		EnforcingConsecutive_5Xx:       off, EnforcingConsecutiveGatewayFailure: off,
		EnforcingConsecutiveLocalOriginFailure: off,
		EnforcingSuccessRate:                   off, EnforcingLocalOriginSuccessRate: off, EnforcingFailurePercentage: off,
	}
	if longest := period(o.MaxEjectionTime); longest != nil { // Envoy accepts none below the first
		first := min(defaultEjection, *longest)
		if base := period(o.BaseEjectionTime); base != nil {
			first = *base
		}
		out.BaseEjectionTime, out.MaxEjectionTime = durationpb.New(first), durationpb.New(max(*longest, first))
	}
	if out.Interval != nil && out.Interval.AsDuration() < resources.LeastSweep { // servers refuse it from users
		out.Interval = durationpb.New(resources.LeastSweep)
	}
	detect(out, o.Detectors)
	return out
}

func detect(out *clusterv3.OutlierDetection, d *resources.OutlierDetectors) {
	on := wrapperspb.UInt32(100)
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
		if factor, ok := percentOf(f.StandardDeviationFactor); ok {
			out.SuccessRateStdevFactor = wrapperspb.UInt32(uint32(min(max(factor*1000, 0), math.MaxUint32)))
		}
	}
	if f := d.FailurePercentage; f != nil {
		out.EnforcingFailurePercentage = on
		out.FailurePercentageMinimumHosts, out.FailurePercentageRequestVolume = uint32Of(f.MinimumHosts),
			uint32Of(f.RequestVolume)
		out.FailurePercentageThreshold = uint32Of(percentage(f.Threshold))
	}
}

// percentage leaves out what is over 100, which only a peer can send.
func percentage(n *uint32) *uint32 {
	if n != nil && *n > 100 {
		return nil
	}
	return n
}
