package matching

import (
	"slices"

	"github.com/causeway-mesh/causeway/resources"
)

// Selects reports whether the policy's top-level targetRef selects the proxy, or one of its inbounds, within the reach
// of the policy's role. It ignores whether the policy is enforced.
func Selects(p *Policy, proxy *Proxy) bool {
	if !reaches(p, proxy) || !selectsProxy(p, proxy) {
		return false
	}
	if len(proxy.Inbounds) == 0 {
		return p.Target.SectionName == "" && selectsTags(p.Target, proxy, proxy.gatewayTags)
	}
	return slices.ContainsFunc(proxy.Inbounds, func(in InboundPort) bool { return selectsPort(p, proxy, &in) })
}

// SelectsInbound reports whether the policy's `rules` apply to one inbound of the proxy. A producer policy is about
// traffic to its own services, so on the inbound side it applies only where those services can be: in its own zone and
// namespace.
func SelectsInbound(p *Policy, proxy *Proxy, in *InboundPort) bool {
	if p.Role == resources.RoleProducer && !sameHome(p, proxy) {
		return false
	}
	return reaches(p, proxy) && selectsProxy(p, proxy) && selectsPort(p, proxy, in)
}

// reaches implements the containment of roles, which no targetRef can escape: consumers and workload owners reach
// proxies of their own zone and namespace, system policies of a zone those of the zone, system policies of the global
// all proxies of the mesh. Producers reach clients everywhere; what they may change there depends on the destination.
// Source: seed 004, "Producers and consumers".
func reaches(p *Policy, proxy *Proxy) bool {
	if p.Resource.Mesh != proxy.Key.Mesh {
		return false
	}
	switch p.Role {
	case resources.RoleSystem:
		return p.zone == "" || p.zone == proxy.Zone
	case resources.RoleProducer:
		return true
	}
	return sameHome(p, proxy)
}

func sameHome(p *Policy, proxy *Proxy) bool {
	return p.zone == proxy.Zone && p.namespace == proxy.Namespace
}

// selectsProxy checks the parts of the targetRef that are about the proxy as a whole.
func selectsProxy(p *Policy, proxy *Proxy) bool {
	ref := p.Target
	if !hasLabels(proxy, ref.Labels) || !hasType(proxy, ref.ProxyTypes) {
		return false
	}
	switch ref.KindOrMesh() {
	case resources.KindDataplane:
		return ref.Name == "" || isNamed(p, proxy)
	case resources.KindMesh, resources.KindMeshSubset, resources.KindMeshService, resources.KindMeshServiceSubset:
		return true
	case resources.KindMeshGateway:
		return selectsGateway(p, proxy)
	}
	return false
}

// isNamed reports whether the targetRef's name and namespace mean the proxy. The name is its display name, or the
// hashed name that the proxy has on the global and in other zones. An empty namespace means the policy's own, in its own
// zone (seed 004, "Empty namespace"), and any for a system policy. A hashed name may have the namespace in which copies
// are kept.
func isNamed(p *Policy, proxy *Proxy) bool {
	ref := p.Target
	switch ref.Name {
	case proxy.Name:
		if ref.Namespace == "" {
			return p.Role == resources.RoleSystem || sameHome(p, proxy)
		}
		return ref.Namespace == proxy.Namespace
	case proxy.HashedName:
		return ref.Namespace == "" || ref.Namespace == proxy.Namespace || ref.Namespace == p.systemNamespace ||
			p.Referrer().ofGlobal() && ref.Namespace == p.namespace
	}
	return false
}

// selectsPort checks the parts of the targetRef that are about one inbound: its section and its tags.
func selectsPort(p *Policy, proxy *Proxy, in *InboundPort) bool {
	if s := p.Target.SectionName; s != "" && !proxy.hasSection(in, s) {
		return false
	}
	return selectsTags(p.Target, proxy, in.Tags)
}

func selectsTags(ref *resources.TargetRef, proxy *Proxy, tags map[string]string) bool {
	switch ref.KindOrMesh() {
	case resources.KindMeshService, resources.KindMeshServiceSubset:
		if ref.Name == "" || tags[tagService] != ref.Name {
			return false
		}
	case resources.KindMeshGateway:
		return true // its tags are those of listeners
	}
	return proxy.hasTags(tags, ref.Tags)
}

func hasLabels(proxy *Proxy, labels map[string]string) bool {
	for key, value := range labels {
		if have, ok := proxy.Labels[key]; !ok || have != value {
			return false
		}
	}
	return true
}

func hasType(proxy *Proxy, types []string) bool {
	if len(types) == 0 {
		return true
	}
	if proxy.Gateway {
		return slices.Contains(types, proxyTypeGateway)
	}
	return slices.Contains(types, proxyTypeSidecar)
}
