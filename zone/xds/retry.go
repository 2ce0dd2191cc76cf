package xds

import (
	"cmp"
	"slices"
	"strings"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// Defaults of a MeshRetry.
const (
	defaultHTTPRetryOn = "gateway-error,connect-failure,refused-stream"
	defaultGRPCRetryOn = "cancelled,connect-failure,gateway-error,refused-stream,reset,resource-exhausted,unavailable"
)

// retryOf returns the retry policy for the requests of a rule, or the unasked one if no rule covers the backend's
// protocol.
func (s *sender) retryOf(rule *matching.ResourceRule, b *backend) *routev3.RetryPolicy {
	conf, unasked := decode[resources.RetryConf](s, rule), &s.unasked().retry
	how, otherwise := cmp.Or(conf.HTTP, unasked.HTTP), defaultHTTPRetryOn
	if b.protocol == "grpc" {
		how, otherwise = cmp.Or(conf.GRPC, unasked.GRPC), defaultGRPCRetryOn
	}
	if how == nil {
		return nil
	}
	return s.retryBy(how, otherwise, rule)
}

func (s *sender) retryBy(r *resources.RequestRetry, otherwise string, rule *matching.ResourceRule) *routev3.RetryPolicy {
	out := &routev3.RetryPolicy{NumRetries: uint32Of(s.repeats("numRetries", r.NumRetries, rule)), PerTryTimeout: durationOf(optional(r.PerTryTimeout))}
	if b := r.BackOff; b != nil {
		out.RetryBackOff = backOff(period(b.BaseInterval), period(b.MaxInterval))
	}
	rateLimitedBackOff(out, r.RateLimitedBackOff)
	retryConditions(out, r, otherwise)
	s.otherHosts(out, r, rule)
	requests := retriable(r.RetriableRequestHeaders)
	if len(requests) == 0 && len(r.RetriableRequestHeaders) > 0 {
		return nil // it would also retry requests that cannot be distinguished
	}
	out.RetriableRequestHeaders = append(out.RetriableRequestHeaders, requests...)
	out.RetriableHeaders = retriable(r.RetriableResponseHeaders)
	return out
}

// defaultBackOff is how long Envoy waits first, unless a conf sets it.
const defaultBackOff = 25 * time.Millisecond

// backOff returns the pauses between attempts. Envoy takes none without a first one, and no longest one below it: merged
// policies may say so, and then the longest counts.
func backOff(base, most *time.Duration) *routev3.RetryPolicy_RetryBackOff {
	if base == nil && most == nil {
		return nil
	}
	first := defaultBackOff
	if base != nil {
		first = *base
	}
	if most != nil {
		first = min(first, *most)
	}
	return &routev3.RetryPolicy_RetryBackOff{BaseInterval: durationpb.New(first), MaxInterval: durationOf(most)}
}

// retriable drops header matches that Envoy would refuse, such as one with an empty prefix.
func retriable(matches []resources.RouteValueMatch) (out []*routev3.HeaderMatcher) {
	for i := range matches {
		if m := headerMatch(&matches[i]); resources.MatchableHeader(matches[i].Name) && m.Validate() == nil {
			out = append(out, m)
		}
	}
	return out
}

func rateLimitedBackOff(out *routev3.RetryPolicy, l *resources.RateLimitedBackOff) {
	if l == nil {
		return
	}
	by := &routev3.RetryPolicy_RateLimitedRetryBackOff{MaxInterval: durationOf(period(l.MaxInterval))}
	for _, h := range l.ResetHeaders {
		format := routev3.RetryPolicy_SECONDS
		if strings.EqualFold(h.Format, "UnixTimestamp") {
			format = routev3.RetryPolicy_UNIX_TIMESTAMP
		}
		if resources.MatchableHeader(h.Name) {
			by.ResetHeaders = append(by.ResetHeaders, &routev3.RetryPolicy_ResetHeader{Name: h.Name, Format: format})
		}
	}
	if len(by.ResetHeaders) > 0 { // Envoy requires at least one
		out.RateLimitedRetryBackOff = by
	}
}

// otherHosts sends a retried request to another host, unless the conf sets otherwise.
func (s *sender) otherHosts(out *routev3.RetryPolicy, r *resources.RequestRetry, rule *matching.ResourceRule) {
	out.HostSelectionRetryMaxAttempts = unaskedSelections
	if n := s.repeats("hostSelectionMaxAttempts", r.HostSelectionMaxAttempts, rule); n != nil && *n > 0 {
		out.HostSelectionRetryMaxAttempts = int64(*n)
	}
	if len(r.HostSelection) == 0 {
		out.RetryHostPredicate, out.RetryPriority = s.notPreviousHosts(), s.notPreviousPriorities(nil)
		return
	}
	for i := range r.HostSelection {
		switch h := &r.HostSelection[i]; h.Predicate {
		case resources.OmitPreviousHosts:
			out.RetryHostPredicate = s.notPreviousHosts()
		case resources.OmitPreviousPriorities:
			out.RetryPriority = s.notPreviousPriorities(h.UpdateFrequency)
		}
	}
}

// retryConditions sets what to retry. Envoy retries a status code in the conf as such, and a method restricts retries
// to its requests.
func retryConditions(out *routev3.RetryPolicy, r *resources.RequestRetry, otherwise string) {
	var on []string
	for _, item := range r.RetryOn {
		switch c := resources.RetryOn(item); {
		case c.Code != 0:
			out.RetriableStatusCodes = append(out.RetriableStatusCodes, c.Code)
			on = append(on, "retriable-status-codes")
		case c.Method != "":
			out.RetriableRequestHeaders = append(out.RetriableRequestHeaders,
				headerMatch(&resources.RouteValueMatch{Name: ":method", Value: c.Method}))
		case c.Name != "":
			on = append(on, c.Name)
		}
	}
	if len(r.RetriableResponseHeaders) > 0 {
		on = append(on, "retriable-headers")
	}
	slices.Sort(on)
	out.RetryOn = strings.Join(slices.Compact(on), ",")
	if out.RetryOn == "" {
		out.RetryOn = otherwise
	}
}

// connectAttempts returns the number of TCP connection attempts to a backend.
func (s *sender) connectAttempts(rule *matching.ResourceRule) *wrapperspb.UInt32Value {
	for _, tcp := range []*resources.TCPRetry{decode[resources.RetryConf](s, rule).TCP, s.unasked().retry.TCP} {
		if tcp != nil && tcp.MaxConnectAttempt != nil && *tcp.MaxConnectAttempt > 0 {
			return uint32Of(s.repeats("tcp.maxConnectAttempt", tcp.MaxConnectAttempt, rule))
		}
	}
	return nil
}
