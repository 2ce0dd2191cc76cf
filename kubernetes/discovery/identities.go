package discovery

import (
	"maps"
	"reflect"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// bears reports whether a pod has an identity of the mesh, or is about to: other zones learn it before the pod answers.
func (p *Pod) bears() bool { return p != nil && p.proxy() != nil && !p.Spec.HostNetwork && !p.over() }

// sameBearer reports whether two states of a pod have the same identity, and are behind the same Services.
func sameBearer(a, b *Pod) bool {
	if !a.bears() || !b.bears() {
		return a.bears() == b.bears()
	}
	return a.proxy().mesh == b.proxy().mesh && a.Spec.NodeName == b.Spec.NodeName &&
		a.Spec.ServiceAccountName == b.Spec.ServiceAccountName && reflect.DeepEqual(a.Metadata.Labels, b.Metadata.Labels)
}

// answers marks the Services in front of a pod, which may be nil.
func (s *space) answers(p *Pod) {
	if p == nil {
		return
	}
	for name, one := range s.services {
		if one.selects(p) {
			s.answered[name] = true
		}
	}
}

// identified returns a MeshService with the identities that may answer for it: those of the pods behind it, and those
// that users wrote. Other zones know the Dataplanes of this zone by nothing else, and would accept every workload of
// the zone as the server. A MeshService without pods keeps its identities. Where there are too many, it has none, which the
// problem says.
func (p *pass) identified(s *space, one *Service, want *resources.Resource) (*resources.Resource, []Problem) {
	spec, err := resources.SpecAs[resources.MeshService](want)
	if err != nil || p.d.Identities == nil {
		return want, nil
	}
	found := p.bearers(s, one, want.Mesh, spec.Selector.DataplaneRef)
	with := *spec
	for _, id := range slices.Sorted(maps.Keys(found)) {
		with.Identities = append(with.Identities, resources.ServiceIdentity{Type: "SpiffeID", Value: id})
	}
	if old := p.snap.Get(want.Key); (len(found) == 0 || len(p.d.pods.held[s.name]) > 0) && old != nil && p.d.Home.Discovered(old) {
		if before, err := resources.SpecAs[resources.MeshService](old); err == nil {
			for _, id := range before.Identities {
				if !slices.Contains(with.Identities, id) {
					with.Identities = append(with.Identities, id)
				}
			}
		}
	}
	if len(with.Identities) == 0 {
		return want, nil
	}
	if len(with.Identities) > resources.MaxServiceIdentities || with.IdentityBytes() > resources.MaxServiceIdentityBytes {
		return want, []Problem{problem(ReasonIdentities, "the pods behind it have %d identities of %d bytes, counted once for each of its ports, "+
			"and a MeshService names %d of %d bytes: other zones accept each workload of this one in place of them, until pods share "+
			"identities or the Service has fewer ports", len(with.Identities), with.IdentityBytes(), resources.MaxServiceIdentities,
			resources.MaxServiceIdentityBytes)}
	}
	named := want.Clone()
	if named.Spec, err = resources.NewSpecOf(resources.TypeMeshService, &with); err != nil {
		return want, nil
	}
	if resources.Validate(named, p.d.Home) != nil {
		return want, nil // an operator's MeshIdentity that no service may name
	}
	return named, nil
}

// bearers returns the identities of the Dataplanes behind a Service in a mesh, or of the one that ref names.
func (p *pass) bearers(s *space, one *Service, mesh string, ref *resources.DataplaneRef) map[string]bool {
	if p.who[mesh] == nil {
		p.who[mesh] = p.d.Identities(mesh)
	}
	found := map[string]bool{}
	add := func(dp *resources.Resource) {
		for _, id := range p.who[mesh](dp) {
			found[id] = true
		}
	}
	of := func(name string, pod *Pod) {
		if pod.bears() && pod.proxy().mesh == mesh && one.selects(pod) {
			add(p.d.Home.Labelled(&resources.Resource{Labels: labelsOf(pod, p.d.nodes[pod.Spec.NodeName]), Key: resources.Key{
				Type: resources.TypeDataplane, Mesh: mesh, Namespace: s.name, Name: name}}))
		}
	}
	users := func(dp *resources.Resource) {
		if dp != nil && !p.d.Home.Discovered(dp) {
			add(dp)
		}
	}
	if ref != nil {
		of(ref.Name, s.pods[ref.Name])
		users(p.snap.Get(resources.Key{Type: resources.TypeDataplane, Mesh: mesh, Namespace: s.name, Name: ref.Name}))
		return found
	}
	for name, pod := range s.pods {
		of(name, pod)
	}
	for dp := range p.snap.List(store.Query{Type: resources.TypeDataplane, Mesh: mesh, Namespace: &s.name, Labels: one.Spec.Selector}) {
		users(dp)
	}
	return found
}
