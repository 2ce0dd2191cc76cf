package matching

import (
	"iter"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
)

// TrafficTargets reads the TrafficTargets of one mesh, of which list gives the resources of a type.
func TrafficTargets(systemNamespace string, list func(resources.Type) iter.Seq[*resources.Resource]) []*Policy {
	targets := slices.Collect(list(resources.TypeTrafficTarget))
	if len(targets) == 0 {
		return nil
	}
	var all []*resources.Resource
	for _, t := range []resources.Type{resources.TypeHTTPRouteGroup, resources.TypeTCPRoute, resources.TypeMeshTrust, resources.TypeMeshIdentity} {
		all = slices.AppendSeq(all, list(t))
	}
	specs := NewTrafficSpecs(systemNamespace, all)
	out := make([]*Policy, len(targets))
	for i, r := range targets {
		out[i] = NewTrafficTarget(r, specs)
	}
	return out
}

// TrafficSpecs are what the TrafficTargets of one mesh refer to, and the trust domains of its service accounts. They are
// built once and never changed; concurrent readers are fine.
type TrafficSpecs struct {
	systemNamespace string
	found           map[trafficKey]*resources.Resource
	// domains are those of every MeshTrust, zones those whose MeshTrusts there are; both sorted.
	domains, zones []string
	// identities are the MeshIdentities.
	identities []*resources.Resource
}

// trafficKey names a spec at its home.
type trafficKey struct {
	t                     resources.Type
	zone, namespace, name string
}

// NewTrafficSpecs keeps the HTTPRouteGroups, TCPRoutes, MeshTrusts and MeshIdentities of list, which are of one mesh; others are passed over.
func NewTrafficSpecs(systemNamespace string, list []*resources.Resource) *TrafficSpecs {
	x := &TrafficSpecs{systemNamespace: systemNamespace, found: map[trafficKey]*resources.Resource{}}
	for _, r := range list {
		switch r.Type {
		case resources.TypeHTTPRouteGroup, resources.TypeTCPRoute:
			x.found[trafficKey{r.Type, r.Zone(), x.home(r.HomeNamespace()), r.DisplayName()}] = r
		case resources.TypeMeshTrust:
			if trust, err := resources.SpecAs[resources.MeshTrust](r); err == nil {
				x.domains = append(x.domains, trust.TrustDomain)
			}
			if zone := r.Zone(); zone != "" {
				x.zones = append(x.zones, zone)
			}
		case resources.TypeMeshIdentity:
			x.identities = append(x.identities, r)
		}
	}
	for _, list := range []*[]string{&x.domains, &x.zones} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return x
}

// home is the namespace, empty for the system's.
func (x *TrafficSpecs) home(namespace string) string {
	if namespace == x.systemNamespace {
		return ""
	}
	return namespace
}

// spec finds what a TrafficTarget refers to by name: in its own zone before the global, in its own namespace before the
// system's; nil when there is nothing.
func (x *TrafficSpecs) spec(p *Policy, ref *resources.TrafficRule) *resources.Resource {
	for _, zone := range []string{p.zone, ""} {
		for _, namespace := range []string{x.home(p.namespace), ""} {
			if r := x.found[trafficKey{resources.Type(ref.Kind), zone, namespace, ref.Name}]; r != nil {
				return r
			}
		}
	}
	return nil
}

// domainsOf are the trust domains whose service accounts a TrafficTarget means: that of its own zone, or those of every
// MeshTrust where the global wrote it.
func (x *TrafficSpecs) domainsOf(p *Policy) []string {
	if p.zone != "" {
		return []string{resources.ZoneTrustDomain(p.Resource.Mesh, p.zone)}
	}
	return x.domains
}

// accounts are the SPIFFE IDs of a service account, as a TrafficTarget means it: in each of its trust domains, and as MeshIdentities of
// its own zone and of the global call it.
func (x *TrafficSpecs) accounts(p *Policy, namespace, name string) []string {
	var out []string
	add := func(id string) {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	for _, domain := range x.domainsOf(p) {
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
