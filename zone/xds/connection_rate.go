package xds

import (
	"encoding/json"
	"fmt"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	limitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/local_ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// connectionStat is the prefix of the statistics of connections over the limit.
const connectionStat = "connection_rate."

// rateFilter names the filter that limits the connections that an inbound accepts. It comes by ECDS, so that no
// listener is replaced, and exists, switched off, without a policy.
func (in *inbound) rateFilter() string { return in.name() + "_connection_rate" }

// connectionLimiter returns the filter for a listener. Both sides of a permissive inbound have the same one.
func (in *inbound) connectionLimiter() (*listenerv3.Filter, error) {
	off, err := pack(newConnectionLimit(in, nil))
	if err != nil {
		return nil, err
	}
	return &listenerv3.Filter{Name: in.rateFilter(),
		ConfigType: &listenerv3.Filter_ConfigDiscovery{ConfigDiscovery: discovered(off)}}, nil
}

// rateLimiter is the filter as ECDS serves it. problem is the reason why a policy has no effect. It is immutable.
type rateLimiter struct {
	filter  *resource
	problem string
}

// rateKey is everything that the filter depends on.
type rateKey struct{ policies, section string }

// connectionRate returns the filter of an inbound.
func (t *target) connectionRate(in *inbound, policies []*matching.Policy) (*rateLimiter, error) {
	key := rateKey{matching.SelectedInbound(t.match, in.port, policies, resources.TypeMeshRateLimit), in.section}
	return t.shared.rates.get(key, func() (*rateLimiter, error) { return newRateLimiter(t.match, in, policies) })
}

func newRateLimiter(of *matching.Proxy, in *inbound, policies []*matching.Policy) (*rateLimiter, error) {
	out := &rateLimiter{}
	var rate *connectionsPer
	rules := matching.InboundConfs(matching.InboundInput{Type: resources.TypeMeshRateLimit, Proxy: of,
		Inbound: in.port, Policies: policies})
	for i := range rules.Items {
		if rules.Items[i].Match != nil {
			continue // apply and rollout status report that a connection has no request to match
		}
		var wrong error
		if rate, wrong = readConnectionRate(rules.Items[i].Conf); wrong != nil {
			origins := rules.Items[i].Origins
			out.problem = fmt.Sprintf("inbound %q: %s: %v", in.section, origins[len(origins)-1].KRI(), wrong)
		}
	}
	var err error
	out.filter, err = newExtension(in.rateFilter(), newConnectionLimit(in, rate))
	return out, err
}

// connectionsPer is a number of connections per interval.
type connectionsPer struct {
	number   uint32
	interval time.Duration
}

// readConnectionRate reads the limit of a conf; nil for none.
func readConnectionRate(raw json.RawMessage) (*connectionsPer, error) {
	var conf resources.RateLimitConf
	if err := json.Unmarshal(raw, &conf); err != nil {
		return nil, err
	}
	if conf.Local == nil || conf.Local.TCP == nil || conf.Local.TCP.Disabled != nil && *conf.Local.TCP.Disabled {
		return nil, nil
	}
	number, interval, err := readRate(conf.Local.TCP.ConnectionRate, "local.tcp", "connectionRate")
	if err != nil {
		return nil, err
	}
	return &connectionsPer{number, interval}, nil
}

// newConnectionLimit returns the filter for a limit, or one without effect. The key makes the chains of an inbound
// share one bucket.
func newConnectionLimit(in *inbound, rate *connectionsPer) *limitv3.LocalRateLimit {
	out := &limitv3.LocalRateLimit{
		StatPrefix: connectionStat + in.name(),
		ShareKey:   in.rateFilter(),
		RuntimeEnabled: &corev3.RuntimeFeatureFlag{RuntimeKey: "causeway.connection_rate",
			DefaultValue: wrapperspb.Bool(rate != nil)},
	}
	if rate == nil {
		rate = &connectionsPer{1, time.Hour} // Envoy requires one
	}
	out.TokenBucket = &typev3.TokenBucket{MaxTokens: rate.number, TokensPerFill: wrapperspb.UInt32(rate.number),
		FillInterval: durationpb.New(rate.interval)}
	return out
}
