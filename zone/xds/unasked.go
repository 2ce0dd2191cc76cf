package xds

import (
	"math"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	prevhostsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	prioritiesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/priority/previous_priorities/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
)

// Defaults against dead endpoints, where no policy covers them. A request is sent again only when no application can
// have seen it, and an unreachable endpoint is ejected for a short while.
const (
	unaskedRetries    = 3
	unaskedRetryOn    = "connect-failure,refused-stream,reset-before-request"
	unaskedSelections = 5 // selections of another endpoint
	unaskedAttempts   = 4 // attempts of a TCP connection: two that eject an endpoint, and two more
	unaskedFailures   = 2 // consecutive connections that an endpoint did not accept
	unaskedEjection   = 2 * time.Second
	longestEjection   = 10 * time.Second
)

// unaskedRetry tries other endpoints, and those of the next priority after the first has failed.
func (s *sender) unaskedRetry() *routev3.RetryPolicy {
	return &routev3.RetryPolicy{
		RetryOn: unaskedRetryOn, NumRetries: wrapperspb.UInt32(unaskedRetries),
		HostSelectionRetryMaxAttempts: unaskedSelections,
		RetryHostPredicate:            s.notPreviousHosts(), RetryPriority: s.notPreviousPriorities(nil),
	}
}

// notPreviousHosts excludes the endpoints that already had the request.
func (s *sender) notPreviousHosts() []*routev3.RetryPolicy_RetryHostPredicate {
	hosts := s.packed(&prevhostsv3.PreviousHostsPredicate{})
	if hosts == nil {
		return nil
	}
	return []*routev3.RetryPolicy_RetryHostPredicate{{
		Name:       "envoy.retry_host_predicates.previous_hosts",
		ConfigType: &routev3.RetryPolicy_RetryHostPredicate_TypedConfig{TypedConfig: hosts},
	}}
}

// notPreviousPriorities excludes the priorities that failed, after so many attempts; nil means 2.
func (s *sender) notPreviousPriorities(after *uint32) *routev3.RetryPolicy_RetryPriority {
	config := &prioritiesv3.PreviousPrioritiesConfig{UpdateFrequency: 2}
	if after != nil && 0 < *after && *after <= math.MaxInt32 {
		config.UpdateFrequency = int32(*after)
	}
	priorities := s.packed(config)
	if priorities == nil {
		return nil
	}
	return &routev3.RetryPolicy_RetryPriority{
		Name:       "envoy.retry_priorities.previous_priorities",
		ConfigType: &routev3.RetryPolicy_RetryPriority_TypedConfig{TypedConfig: priorities},
	}
}

func (s *sender) packed(m message) *anypb.Any {
	out, err := pack(m)
	if err != nil {
		s.problem("retries", err.Error())
		return nil
	}
	return out
}

// unaskedOutliers ejects endpoints that do not accept connections, and ignores what an application answers.
func unaskedOutliers() *clusterv3.OutlierDetection {
	out := outliers(&resources.OutlierDetection{})
	out.Interval = durationpb.New(time.Second)
	out.BaseEjectionTime, out.MaxEjectionTime = durationpb.New(unaskedEjection), durationpb.New(longestEjection)
	out.MaxEjectionPercent = wrapperspb.UInt32(100)
	out.SplitExternalLocalOriginErrors = true
	out.EnforcingConsecutiveLocalOriginFailure = wrapperspb.UInt32(100)
	out.ConsecutiveLocalOriginFailure = wrapperspb.UInt32(unaskedFailures)
	return out
}
