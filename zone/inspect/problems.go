package inspect

import (
	"cmp"
	"iter"
	"slices"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// problemWarnings returns the warnings for a write about what the policy's conditions report afterwards: references
// that resolve to nothing, clients that cannot be distinguished, subsets without Dataplanes.
func (h *handlers) problemWarnings(after store.Snapshot, p *matching.Policy, reader *api.Reader) []string {
	byTags := p.ByTags() // effectWarnings reports these
	var out []string
	for _, problem := range h.views.config.problemsOf(after, p) {
		if !slices.Contains(byTags, problem) {
			out = append(out, reader.Text(problem.String()))
		}
	}
	return out
}

// trafficWarnings is problemWarnings for a TrafficTarget.
func (h *handlers) trafficWarnings(after store.Snapshot, r *resources.Resource, reader *api.Reader) []string {
	list := func(t resources.Type) iter.Seq[*resources.Resource] {
		if t == r.Type {
			return slices.Values([]*resources.Resource{r})
		}
		return after.List(store.Query{Type: t, Mesh: r.Mesh})
	}
	var out []string
	for _, p := range matching.TrafficTargets(h.views.config.SystemNamespace, list) {
		out = append(out, h.problemWarnings(after, p, reader)...)
	}
	return out
}

// problemsOf returns the problems of a policy. It reads only what the policy refers to, so that a write in a large mesh
// costs no more.
func (c *Config) problemsOf(snap store.Snapshot, p *matching.Policy) []matching.Warning {
	var all []*matching.Destination
	for _, r := range c.meantBy(snap, p.Resource) {
		if d, err := matching.NewDestination(r); err == nil {
			all = append(all, d)
		}
	}
	list := func(t resources.Type) []*resources.Resource {
		return slices.Collect(snap.List(store.Query{Type: t, Mesh: p.Resource.Mesh}))
	}
	x := matching.NewDestinations(matching.DestinationsConfig{Zone: c.Zone, SystemNamespace: c.SystemNamespace,
		Gateways: list(resources.TypeMeshGateway), Grants: list(resources.TypeMeshReferenceGrant)}, all)
	return c.allProblems(snap, x, p)
}

// meantBy returns the services and routes that the references of a policy may mean, each once.
func (c *Config) meantBy(snap store.Snapshot, policy *resources.Resource) (all []*resources.Resource) {
	add := func(r *resources.Resource) {
		if r != nil {
			all = append(all, r)
		}
	}
	for _, ref := range resources.References(policy) {
		if matching.IsDestination(resources.Type(ref.Kind)) {
			c.addMeant(snap, policy, &ref, add)
		}
	}
	slices.SortFunc(all, func(a, b *resources.Resource) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return slices.CompactFunc(all, func(a, b *resources.Resource) bool { return a.Key == b.Key })
}

// hashSuffix is the length that the name of a copy adds to the display name.
const hashSuffix = 17

// addMeant adds the possible targets of a policy's reference, and the members of a MeshMultiZoneService.
func (c *Config) addMeant(snap store.Snapshot, policy *resources.Resource, ref *resources.TargetRef,
	add func(*resources.Resource)) {
	t, mesh := resources.Type(ref.Kind), policy.Mesh
	labelled := func(t resources.Type, labels map[string]string) {
		for r := range snap.List(store.Query{Type: t, Mesh: mesh, Labels: labels}) {
			add(r)
			if r.Type != resources.TypeMeshMultiZoneService {
				continue
			}
			if spec, err := resources.SpecAs[resources.MeshMultiZoneService](r); err == nil {
				for s := range snap.List(store.Query{Type: resources.TypeMeshService, Mesh: mesh,
					Labels: spec.Selector.MeshService.MatchLabels}) {
					add(s)
				}
			}
		}
	}
	if len(ref.Labels) > 0 {
		labelled(t, ref.Labels)
		return
	}
	labelled(t, map[string]string{resources.LabelDisplayName: ref.Name})
	if n := len(ref.Name) - hashSuffix; n > 0 { // a hashed name
		labelled(t, map[string]string{resources.LabelDisplayName: ref.Name[:n]})
	}
	namespaces := []string{"", policy.Namespace, c.SystemNamespace, ref.Namespace}
	for i, ns := range namespaces {
		if slices.Contains(namespaces[:i], ns) {
			continue
		}
		add(snap.Get(resources.Key{Type: t, Mesh: mesh, Namespace: ns, Name: ref.Name}))
	}
}

// allProblems returns the problems of a policy. Those include the backends of a route that name a subset without
// Dataplanes, of a service of this server's zone or, on the global, of any zone.
func (c *Config) allProblems(snap store.Snapshot, x *matching.Destinations, p *matching.Policy) []matching.Warning {
	out, subsets := x.ProblemsAndSubsets(p)
	for _, s := range subsets {
		if zone := s.Service.Zone(); c.Zone != "" && zone != c.Zone {
			continue
		}
		some := false
		for dp := range snap.List(store.Query{Type: resources.TypeDataplane, Mesh: s.Service.Mesh}) {
			proxy, err := matching.NewProxy(dp)
			if some = err == nil && matching.ServesSubset(s.Service, proxy, s.Tags); some {
				break
			}
		}
		if !some {
			out = append(out, matching.Warning{Policy: p.KRI, Field: s.Field,
				Text: "no Dataplane behind " + resources.KRIOf(s.Service).String() + " has an inbound with these tags"})
		}
	}
	return out
}
