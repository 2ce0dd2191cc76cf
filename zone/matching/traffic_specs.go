package matching

import (
	"iter"
	"maps"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
)

// TrafficTargets reads the TrafficTargets of one mesh. list returns the mesh's resources of a type.
func TrafficTargets(systemNamespace string, list func(resources.Type) iter.Seq[*resources.Resource]) []*Policy {
	targets := slices.Collect(list(resources.TypeTrafficTarget))
	if len(targets) == 0 {
		return nil
	}
	var all []*resources.Resource
	for _, t := range []resources.Type{resources.TypeHTTPRouteGroup, resources.TypeTCPRoute, resources.TypeMeshTrust,
		resources.TypeMeshIdentity} {
		all = slices.AppendSeq(all, list(t))
	}
	specs := NewTrafficSpecs(systemNamespace, all)
	out := make([]*Policy, len(targets))
	for i, r := range targets {
		out[i] = NewTrafficTarget(r, specs)
	}
	return out
}

// TrafficSpecs holds the specs that the TrafficTargets of one mesh refer to, and the trust domains of its service
// accounts. It is immutable and safe for concurrent use.
type TrafficSpecs struct {
	systemNamespace string
	found           map[trafficKey]*resources.Resource
	// domains are the trust domains of all MeshTrusts, zones the zones that have a MeshTrust; both sorted. first has one domain of
	// each zone, that of ZoneTrustDomain if it is there, and all of the global.
	domains, first, zones []string
	// identities are the MeshIdentities.
	identities []*resources.Resource
}

// trafficKey identifies a spec at its home.
type trafficKey struct {
	t                     resources.Type
	zone, namespace, name string
}

// NewTrafficSpecs indexes the HTTPRouteGroups, TCPRoutes, MeshTrusts and MeshIdentities of list, which must be of one
// mesh. It ignores other types.
func NewTrafficSpecs(systemNamespace string, list []*resources.Resource) *TrafficSpecs {
	x := &TrafficSpecs{systemNamespace: systemNamespace, found: map[trafficKey]*resources.Resource{}}
	ofZones := map[string]string{}
	for _, r := range list {
		switch r.Type {
		case resources.TypeHTTPRouteGroup, resources.TypeTCPRoute:
			x.found[trafficKey{r.Type, r.Zone(), x.home(r), r.DisplayName()}] = r
		case resources.TypeMeshTrust:
			zone := r.Zone()
			if zone != "" {
				x.zones = append(x.zones, zone)
			}
			trust, err := resources.SpecAs[resources.MeshTrust](r)
			if err != nil {
				continue
			}
			x.domains = append(x.domains, trust.TrustDomain)
			own := resources.ZoneTrustDomain(r.Mesh, zone)
			switch has := ofZones[zone]; {
			case zone == "":
				x.first = append(x.first, trust.TrustDomain)
			case has == "", has != own && (trust.TrustDomain == own || trust.TrustDomain < has):
				ofZones[zone] = trust.TrustDomain
			}
		case resources.TypeMeshIdentity:
			x.identities = append(x.identities, r)
		}
	}
	x.first = slices.AppendSeq(x.first, maps.Values(ofZones))
	for _, list := range []*[]string{&x.domains, &x.first, &x.zones} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return x
}

// home returns the namespace of a resource, or an empty string for the system namespace of its server.
func (x *TrafficSpecs) home(r *resources.Resource) string {
	return resources.OwnerOf(r, x.systemNamespace).Namespace
}

// spec finds the spec that a TrafficTarget refers to by name: in its own zone before the global, in its own namespace
// before the system namespace. It returns nil if there is none.
func (x *TrafficSpecs) spec(p *Policy, ref *resources.TrafficRule) *resources.Resource {
	for _, zone := range []string{p.zone, ""} {
		for _, namespace := range []string{x.home(p.Resource), ""} {
			if r := x.found[trafficKey{resources.Type(ref.Kind), zone, namespace, ref.Name}]; r != nil {
				return r
			}
		}
	}
	return nil
}

// domainsOf returns the trust domains whose service accounts a TrafficTarget means: that of its own zone, or those of
// every MeshTrust if it is from the global.
func (x *TrafficSpecs) domainsOf(target *resources.Resource) []string {
	if zone := target.Zone(); zone != "" {
		return []string{resources.ZoneTrustDomain(target.Mesh, zone)}
	}
	return x.domains
}

// accounts returns the SPIFFE IDs of a service account that a TrafficTarget means: one in each of the trust domains,
// and those that MeshIdentities of its own zone and of the global give it.
func (x *TrafficSpecs) accounts(p *Policy, domains []string, namespace, name string) []string {
	out, known := make([]string, 0, len(domains)), make(map[string]bool, len(domains))
	add := func(id string) {
		if !known[id] {
			known[id], out = true, append(out, id)
		}
	}
	for _, domain := range domains {
		add("spiffe://" + domain + "/ns/" + namespace + "/sa/" + name)
	}
	zones := x.zones
	if p.zone != "" {
		zones = []string{p.zone}
	}
	for _, r := range x.identities {
		spec, err := resources.SpecAs[resources.MeshIdentity](r)
		if err != nil {
			continue
		}
		path, ok := spec.ServiceAccountPath(namespace, name)
		for _, zone := range zones {
			if domain, err := spec.TrustDomainIn(r.Mesh, zone); ok && err == nil && (r.Zone() == "" || r.Zone() == zone) {
				add("spiffe://" + domain + path)
			}
		}
	}
	return out
}
