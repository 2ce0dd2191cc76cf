package xds

import (
	"encoding/json"
	"fmt"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// balance sets how Envoy chooses a backend's endpoint, from a MeshLoadBalancingStrategy. Values that Envoy would
// refuse, which only a peer can send, keep their defaults.
func (s *sender) balance(c *clusterv3.Cluster, b *backend) {
	rule := s.balancing.For(b.key())
	by := decode[resources.BalancingConf](s, rule).LoadBalancer
	if by == nil {
		return
	}
	if !b.http() && (by.Type == resources.BalanceRingHash || by.Type == resources.BalanceMaglev) {
		s.problem(originOf(rule), "connections have nothing for "+by.Type+" to hash: they go to random endpoints")
	}
	switch by.Type {
	case resources.BalanceLeastRequest:
		c.LbPolicy = clusterv3.Cluster_LEAST_REQUEST
		if l := by.LeastRequest; l != nil && l.ChoiceCount != nil && *l.ChoiceCount >= 2 {
			c.LbConfig = &clusterv3.Cluster_LeastRequestLbConfig_{LeastRequestLbConfig: &clusterv3.Cluster_LeastRequestLbConfig{ChoiceCount: uint32Of(s.repeats("loadBalancer.leastRequest.choiceCount", l.ChoiceCount, rule))}}
		}
	case resources.BalanceRandom:
		c.LbPolicy = clusterv3.Cluster_RANDOM
	case resources.BalanceRingHash:
		c.LbPolicy = clusterv3.Cluster_RING_HASH
		r := by.RingHash
		if r != nil && !resources.RingSizes(r.MinRingSize, r.MaxRingSize) {
			r = nil
		}
		if s.balancesOthers(rule) {
			r = s.smallRing(r, rule)
		}
		if r != nil {
			c.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: ringHash(r)}
		}
	case resources.BalanceMaglev:
		c.LbPolicy = clusterv3.Cluster_MAGLEV
		m := by.Maglev
		if m == nil || m.TableSize == nil || !resources.MaglevTable(m.TableSize) {
			return
		}
		if *m.TableSize > resources.MostOfOthers && s.balancesOthers(rule) {
			s.problem(originOf(rule), fmt.Sprintf("loadBalancer.maglev.tableSize: %s", largeTable(*m.TableSize)))
			return
		}
		c.LbConfig = &clusterv3.Cluster_MaglevLbConfig_{MaglevLbConfig: &clusterv3.Cluster_MaglevLbConfig{TableSize: uint64Of(m.TableSize)}}
	}
}

// balancesOthers reports whether the producer of a service says how the proxies of its clients choose endpoints.
func (s *sender) balancesOthers(rule *matching.ResourceRule) bool {
	return slices.ContainsFunc(rule.Origins, func(o matching.Origin) bool {
		p, err := resources.SpecAs[resources.Policy](o.Policy.Resource)
		if err != nil || !ofProducer(o) || o.RuleIndex >= len(p.To) {
			return false
		}
		var conf resources.BalancingConf
		return json.Unmarshal(p.To[o.RuleIndex].Default, &conf) != nil || conf.LoadBalancer != nil
	})
}

// smallRing bounds a ring, nil for the usual one, that a producer has other owners' proxies build. Without a bound, endpoints of uneven weights
// would make one of Envoy's own limit. Servers refuse such a policy; a peer, or an earlier version, may have accepted it.
func (s *sender) smallRing(r *resources.RingHashBy, rule *matching.ResourceRule) *resources.RingHashBy {
	small, most := resources.RingHashBy{}, uint32(resources.MostOfOthers)
	if r != nil {
		small = *r
	}
	if small.MinRingSize != nil && *small.MinRingSize > most {
		s.problem(originOf(rule), fmt.Sprintf("loadBalancer.ringHash.minRingSize: %s", largeTable(*small.MinRingSize)))
		small.MinRingSize = &most
	}
	if small.MaxRingSize == nil || *small.MaxRingSize > most {
		small.MaxRingSize = &most
	}
	return &small
}

func largeTable(size uint32) string {
	return fmt.Sprintf("a policy of the service's producer may not make its clients' proxies build a table of %d entries: they build one of %d",
		size, resources.MostOfOthers)
}

func ringHash(r *resources.RingHashBy) *clusterv3.Cluster_RingHashLbConfig {
	out := &clusterv3.Cluster_RingHashLbConfig{MinimumRingSize: uint64Of(r.MinRingSize),
		MaximumRingSize: uint64Of(r.MaxRingSize)}
	if r.HashFunction == "MurmurHash2" {
		out.HashFunction = clusterv3.Cluster_RingHashLbConfig_MURMUR_HASH_2
	}
	return out
}

func uint64Of(n *uint32) *wrapperspb.UInt64Value {
	if n == nil {
		return nil
	}
	return wrapperspb.UInt64(uint64(*n))
}

// hashes returns the parts of a request that RingHash and Maglev hash.
func (s *sender) hashes(rule *matching.ResourceRule) (out []*routev3.RouteAction_HashPolicy) {
	conf := decode[resources.BalancingConf](s, rule)
	all := conf.HashPolicies
	if b := conf.LoadBalancer; len(all) == 0 && b != nil {
		switch {
		case b.RingHash != nil:
			all = b.RingHash.HashPolicies
		case b.Maglev != nil:
			all = b.Maglev.HashPolicies
		}
	}
	for i := range all {
		if _, problem := all[i].Problem(); problem == "" {
			out = append(out, hashPolicy(&all[i]))
		}
	}
	return out
}

func hashPolicy(h *resources.HashPolicy) *routev3.RouteAction_HashPolicy {
	out := &routev3.RouteAction_HashPolicy{Terminal: h.Terminal != nil && *h.Terminal}
	switch h.Type {
	case resources.HashByHeader:
		out.PolicySpecifier = &routev3.RouteAction_HashPolicy_Header_{Header: &routev3.RouteAction_HashPolicy_Header{HeaderName: h.Header.Name}}
	case resources.HashByCookie:
		cookie := &routev3.RouteAction_HashPolicy_Cookie{Name: h.Cookie.Name, Ttl: durationOf(optional(h.Cookie.TTL))}
		if h.Cookie.Path != nil {
			cookie.Path = *h.Cookie.Path
		}
		out.PolicySpecifier = &routev3.RouteAction_HashPolicy_Cookie_{Cookie: cookie}
	case resources.HashByConnection, resources.HashBySourceIP:
		out.PolicySpecifier = &routev3.RouteAction_HashPolicy_ConnectionProperties_{ConnectionProperties: &routev3.RouteAction_HashPolicy_ConnectionProperties{SourceIp: true}}
	case resources.HashByQueryParameter:
		out.PolicySpecifier = &routev3.RouteAction_HashPolicy_QueryParameter_{QueryParameter: &routev3.RouteAction_HashPolicy_QueryParameter{Name: h.QueryParameter.Name}}
	case resources.HashByFilterState:
		out.PolicySpecifier = &routev3.RouteAction_HashPolicy_FilterState_{FilterState: &routev3.RouteAction_HashPolicy_FilterState{Key: h.FilterState.Key}}
	}
	return out
}
