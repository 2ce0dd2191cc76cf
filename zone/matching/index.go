package matching

import (
	"slices"

	"github.com/causeway-mesh/causeway/resources"
)

// Index holds policies of any types and meshes, so that each proxy is checked only against those that may select it:
// each policy is filed under one condition that a proxy must meet. It is immutable and safe for concurrent use.
type Index struct {
	// sorted holds all policies in the order of Compare. buckets holds positions in it.
	sorted  []*Policy
	buckets map[bucket][]int
}

// bucket is one condition on a proxy. kind defines the meaning of key and value.
type bucket struct {
	mesh       string
	kind       bucketKind
	key, value string
}

type bucketKind uint8

const (
	// byHome is for policies that select all proxies within reach: key is the zone, value the namespace.
	byHome bucketKind = iota
	// byZone is for policies that select all proxies of a zone: key is the zone.
	byZone
	// byMesh is for policies that may select any proxy of the mesh.
	byMesh
	byName
	byLabel
	byTag
)

// NewIndex indexes the policies. Apart from sorting, it takes time and memory linear in their number.
func NewIndex(policies []*Policy) *Index {
	x := &Index{sorted: slices.Clone(policies), buckets: map[bucket][]int{}}
	sortPolicies(x.sorted)
	common := countLabels(x.sorted)
	for i, p := range x.sorted {
		b := bucketOf(p, common)
		x.buckets[b] = append(x.buckets[b], i)
	}
	return x
}

// Candidates returns, in the order of Compare, a superset of the policies that select the proxy.
func (x *Index) Candidates(proxy *Proxy) []*Policy {
	var at []int
	for _, b := range bucketsOf(proxy) {
		at = append(at, x.buckets[b]...)
	}
	slices.Sort(at)
	out := make([]*Policy, len(at))
	for i, j := range at {
		out[i] = x.sorted[j]
	}
	return out
}

// Inbound calls the function Inbound with all policies of the index.
func (x *Index) Inbound(proxy *Proxy, in *InboundPort) Rules {
	return Inbound(proxy, in, x.Candidates(proxy))
}

type label struct{ key, value string }

// countLabels counts how many policies require each label, so that each can be filed under its rarest one.
func countLabels(policies []*Policy) map[label]int {
	n := map[label]int{}
	for _, p := range policies {
		for k, v := range p.Target.Labels {
			n[label{k, v}]++
		}
	}
	return n
}

func bucketOf(p *Policy, common map[label]int) bucket {
	ref, mesh := p.Target, p.Resource.Mesh
	if ref.KindOrMesh() == resources.KindDataplane && ref.Name != "" {
		return bucket{mesh, byName, ref.Name, ""}
	}
	if len(ref.Labels) > 0 {
		l := rarest(ref.Labels, common)
		return bucket{mesh, byLabel, l.key, l.value}
	}
	switch ref.KindOrMesh() {
	case resources.KindMeshService, resources.KindMeshServiceSubset:
		return bucket{mesh, byTag, tagService, ref.Name}
	}
	switch p.Role {
	case resources.RoleConsumer, resources.RoleWorkloadOwner:
		return bucket{mesh, byHome, p.zone, p.namespace}
	case resources.RoleSystem:
		if p.zone != "" {
			return bucket{mesh, byZone, p.zone, ""}
		}
	}
	return bucket{mesh, byMesh, "", ""}
}

// rarest returns the rarest label, and the one with the smallest key if several are equally rare, so that the result is
// deterministic.
func rarest(labels map[string]string, common map[label]int) label {
	var best label
	for k, v := range labels {
		l := label{k, v}
		n, m := common[l], common[best]
		if best.key == "" || n < m || n == m && l.key < best.key {
			best = l
		}
	}
	return best
}

func bucketsOf(proxy *Proxy) []bucket {
	mesh := proxy.Key.Mesh
	out := []bucket{
		{mesh, byMesh, "", ""},
		{mesh, byZone, proxy.Zone, ""},
		{mesh, byHome, proxy.Zone, proxy.Namespace},
		{mesh, byName, proxy.Name, ""},
		{mesh, byName, proxy.HashedName, ""},
	}
	for k, v := range proxy.Labels {
		out = append(out, bucket{mesh, byLabel, k, v})
	}
	services := map[string]bool{}
	for i := range proxy.Inbounds {
		services[proxy.Inbounds[i].Tags[tagService]] = true
	}
	services[proxy.gatewayTags[tagService]] = true
	for name := range services {
		out = append(out, bucket{mesh, byTag, tagService, name})
	}
	return out
}
