package xds

import (
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
			c.LbConfig = &clusterv3.Cluster_LeastRequestLbConfig_{LeastRequestLbConfig: &clusterv3.Cluster_LeastRequestLbConfig{ChoiceCount: uint32Of(l.ChoiceCount)}}
		}
	case resources.BalanceRandom:
		c.LbPolicy = clusterv3.Cluster_RANDOM
	case resources.BalanceRingHash:
		c.LbPolicy = clusterv3.Cluster_RING_HASH
		if r := by.RingHash; r != nil && resources.RingSizes(r.MinRingSize, r.MaxRingSize) {
			c.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: ringHash(r)}
		}
	case resources.BalanceMaglev:
		c.LbPolicy = clusterv3.Cluster_MAGLEV
		if m := by.Maglev; m != nil && m.TableSize != nil && resources.MaglevTable(m.TableSize) {
			c.LbConfig = &clusterv3.Cluster_MaglevLbConfig_{MaglevLbConfig: &clusterv3.Cluster_MaglevLbConfig{TableSize: uint64Of(m.TableSize)}}
		}
	}
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
