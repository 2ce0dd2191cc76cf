package matching

import (
	"iter"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
)

// Condition is something that a proxy must meet for a policy to select it. It is comparable, and opaque.
type Condition struct {
	mesh       string
	kind       conditionKind
	key, value string
}

type conditionKind uint8

const (
	// byHome is for policies that select all proxies within reach: key is the zone, value the namespace.
	byHome conditionKind = iota
	// byZone is for policies that select all proxies of a zone: key is the zone.
	byZone
	// byMesh is for policies that may select any proxy of the mesh.
	byMesh
	byName
	byLabel
	byTag
	// byGateway is for policies of a MeshGateway: key is one of the names by which they mean it.
	byGateway
)

type label struct{ key, value string }

// conditionOf returns the condition that p is filed under. common counts labels, see countLabels.
func conditionOf(p *Policy, common map[label]int) Condition {
	ref, mesh := p.Target, p.Resource.Mesh
	if ref.KindOrMesh() == resources.KindDataplane && ref.Name != "" {
		return Condition{mesh, byName, ref.Name, ""}
	}
	if len(ref.Labels) > 0 {
		l := rarest(ref.Labels, common)
		return Condition{mesh, byLabel, l.key, l.value}
	}
	switch ref.KindOrMesh() {
	case resources.KindMeshService, resources.KindMeshServiceSubset:
		return Condition{mesh, byTag, tagService, ref.Name}
	case resources.KindMeshGateway:
		if ref.Name != "" {
			return Condition{mesh, byGateway, ref.Name, ""}
		}
	}
	switch p.Role {
	case resources.RoleConsumer, resources.RoleWorkloadOwner:
		return Condition{mesh, byHome, p.zone, p.namespace}
	case resources.RoleSystem:
		if p.zone != "" {
			return Condition{mesh, byZone, p.zone, ""}
		}
	}
	return Condition{mesh, byMesh, "", ""}
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

// ServedBy returns conditions of which a proxy meets all if a MeshService selects one of its inbounds.
func ServedBy(service *resources.Resource) []Condition {
	mesh := service.Mesh
	out := []Condition{{mesh, byHome, service.Zone(), service.HomeNamespace()}}
	spec, err := resources.SpecAs[resources.MeshService](service)
	if err != nil {
		return out
	}
	switch of := spec.Selector; {
	case of.DataplaneRef != nil:
		out = append(out, Condition{mesh, byName, of.DataplaneRef.Name, ""})
	case of.DataplaneLabels != nil:
		for k, v := range of.DataplaneLabels.MatchLabels {
			out = append(out, Condition{mesh, byLabel, k, v})
		}
	case of.DataplaneTags[tagService] != "":
		out = append(out, Condition{mesh, byTag, tagService, of.DataplaneTags[tagService]})
	}
	return out
}

// Conditions yields the conditions that a proxy meets, each once. A policy can only select the proxy if its own
// condition is among them.
func Conditions(proxy *Proxy) iter.Seq[Condition] {
	return func(yield func(Condition) bool) {
		mesh := proxy.Key.Mesh
		for _, c := range [...]Condition{
			{mesh, byMesh, "", ""},
			{mesh, byZone, proxy.Zone, ""},
			{mesh, byHome, proxy.Zone, proxy.Namespace},
			{mesh, byName, proxy.Name, ""},
		} {
			if !yield(c) {
				return
			}
		}
		if proxy.HashedName != proxy.Name && !yield(Condition{mesh, byName, proxy.HashedName, ""}) {
			return
		}
		for k, v := range proxy.Labels {
			if !yield(Condition{mesh, byLabel, k, v}) {
				return
			}
		}
		for i := range proxy.Inbounds {
			name := proxy.Inbounds[i].Tags[tagService]
			if !proxy.serves(name, i) && !yield(Condition{mesh, byTag, tagService, name}) {
				return
			}
		}
		if name := proxy.gatewayTags[tagService]; !proxy.serves(name, len(proxy.Inbounds)) &&
			!yield(Condition{mesh, byTag, tagService, name}) {
			return
		}
		for i, name := range proxy.servedAs {
			if !slices.Contains(proxy.servedAs[:i], name) && !yield(Condition{mesh, byGateway, name, ""}) {
				return
			}
		}
	}
}

// serves reports whether one of the first n inbounds is of a service.
func (p *Proxy) serves(service string, n int) bool {
	for i := range n {
		if p.Inbounds[i].Tags[tagService] == service {
			return true
		}
	}
	return false
}
