package xds

import (
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// retryConf is the conf of a MeshRetry.
type retryConf struct {
	TCP *struct {
		MaxConnectAttempt *uint32 `json:"maxConnectAttempt"`
	} `json:"tcp"`
	HTTP *httpRetry `json:"http"`
	GRPC *httpRetry `json:"grpc"`
}

// httpRetry says which requests are sent again, and how often.
type httpRetry struct {
	NumRetries    *uint32 `json:"numRetries"`
	PerTryTimeout *string `json:"perTryTimeout"`
	BackOff       *struct {
		BaseInterval *string `json:"baseInterval"`
		MaxInterval  *string `json:"maxInterval"`
	} `json:"backOff"`
	RateLimitedBackOff *struct {
		MaxInterval  *string `json:"maxInterval"`
		ResetHeaders []struct {
			Name   string `json:"name"`
			Format string `json:"format"`
		} `json:"resetHeaders"`
	} `json:"rateLimitedBackOff"`
	RetryOn                  []string                    `json:"retryOn"`
	RetriableRequestHeaders  []resources.RouteValueMatch `json:"retriableRequestHeaders"`
	RetriableResponseHeaders []resources.RouteValueMatch `json:"retriableResponseHeaders"`
}

// What is tried again where a MeshRetry does not say.
const (
	defaultHTTPRetryOn = "gateway-error,connect-failure,refused-stream"
	defaultGRPCRetryOn = "cancelled,connect-failure,gateway-error,refused-stream,reset,resource-exhausted,unavailable"
)

// retryOf is the policy for the requests of a rule; where no rule speaks of the backend's protocol, it is unaskedRetry.
func (s *sender) retryOf(rule *matching.ResourceRule, b *backend) *routev3.RetryPolicy {
	conf := decode[retryConf](s, rule)
	how, otherwise := conf.HTTP, defaultHTTPRetryOn
	if b.protocol == "grpc" {
		how, otherwise = conf.GRPC, defaultGRPCRetryOn
	}
	if how == nil {
		return s.unaskedRetry()
	}
	return how.envoy(otherwise)
}

func (r *httpRetry) envoy(otherwise string) *routev3.RetryPolicy {
	out := &routev3.RetryPolicy{NumRetries: uint32Of(r.NumRetries), PerTryTimeout: durationOf(optional(r.PerTryTimeout))}
	if b := r.BackOff; b != nil {
		if base := optional(b.BaseInterval); base != nil && *base > 0 {
			out.RetryBackOff = &routev3.RetryPolicy_RetryBackOff{BaseInterval: durationOf(base)}
			if most := optional(b.MaxInterval); most != nil && *most >= *base {
				out.RetryBackOff.MaxInterval = durationOf(most)
			}
		}
	}
	r.rateLimited(out)
	r.conditions(out, otherwise)
	for i := range r.RetriableRequestHeaders {
		out.RetriableRequestHeaders = append(out.RetriableRequestHeaders, headerMatch(&r.RetriableRequestHeaders[i]))
	}
	for i := range r.RetriableResponseHeaders {
		out.RetriableHeaders = append(out.RetriableHeaders, headerMatch(&r.RetriableResponseHeaders[i]))
	}
	return out
}

func (r *httpRetry) rateLimited(out *routev3.RetryPolicy) {
	l := r.RateLimitedBackOff
	if l == nil || len(l.ResetHeaders) == 0 {
		return
	}
	out.RateLimitedRetryBackOff = &routev3.RetryPolicy_RateLimitedRetryBackOff{MaxInterval: durationOf(optional(l.MaxInterval))}
	for _, h := range l.ResetHeaders {
		format := routev3.RetryPolicy_SECONDS
		if strings.EqualFold(h.Format, "UnixTimestamp") {
			format = routev3.RetryPolicy_UNIX_TIMESTAMP
		}
		out.RateLimitedRetryBackOff.ResetHeaders = append(out.RateLimitedRetryBackOff.ResetHeaders, &routev3.RetryPolicy_ResetHeader{Name: h.Name, Format: format})
	}
}

// conditions: a status code among them is retried as such, and a method restricts what is retried to requests of it.
func (r *httpRetry) conditions(out *routev3.RetryPolicy, otherwise string) {
	var on []string
	for _, item := range r.RetryOn {
		switch c := resources.RetryOn(item); {
		case c.Code != 0:
			out.RetriableStatusCodes = append(out.RetriableStatusCodes, c.Code)
			on = append(on, "retriable-status-codes")
		case c.Method != "":
			out.RetriableRequestHeaders = append(out.RetriableRequestHeaders, headerMatch(&resources.RouteValueMatch{Name: ":method", Value: c.Method}))
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

// connectAttempts is how often a TCP connection to a backend is tried.
func (s *sender) connectAttempts(rule *matching.ResourceRule) *wrapperspb.UInt32Value {
	conf := decode[retryConf](s, rule)
	if conf.TCP == nil || conf.TCP.MaxConnectAttempt == nil || *conf.TCP.MaxConnectAttempt == 0 {
		return wrapperspb.UInt32(unaskedAttempts)
	}
	return wrapperspb.UInt32(*conf.TCP.MaxConnectAttempt)
}
