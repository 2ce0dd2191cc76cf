package matching

import (
	"cmp"
	"slices"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// TaggedAway is what another zone has for tags.
type TaggedAway struct {
	Zone string
	// Service and its section are behind the zone's ingress. Service is nil if the ingress lists the tags themselves.
	Service *Destination
	Section string

	namespace, protocol string
	// more counts the tags of the service that the outbound does not name.
	more int
}

// ConcernsService reports whether a MeshService may change what the tags mean: it is part of it, or it may set the
// protocol of Dataplanes of this zone that carry them.
func (t *Tagged) ConcernsService(r *resources.Resource, zone string) bool {
	if _, covered := t.covered(r); covered {
		return true
	}
	return t.found && r.Zone() == zone && t.ownerOf(r.HomeNamespace()) == t.Namespace && t.maySelect(r)
}

// maySelect reports whether a MeshService may select a Dataplane that carries the tags.
func (t *Tagged) maySelect(r *resources.Resource) bool {
	spec, err := resources.SpecAs[resources.MeshService](r)
	if err != nil {
		return false
	}
	if spec.Selector.DataplaneRef != nil || spec.Selector.DataplaneLabels != nil {
		return true
	}
	for k, v := range spec.Selector.DataplaneTags {
		if have, tagged := t.Tags[k]; tagged && have != v {
			return false
		}
	}
	return true
}

// covered reports whether every Dataplane of a MeshService carries the tags, as far as its spec says. more counts the
// tags beyond them.
func (t *Tagged) covered(r *resources.Resource) (more int, ok bool) {
	spec, err := resources.SpecAs[resources.MeshService](r)
	if err != nil || r.Type != resources.TypeMeshService {
		return 0, false
	}
	named, said := 0, false
	for k, v := range t.Tags {
		switch {
		case k == resources.LabelZone && r.Zone() == v, k == resources.LabelNamespace && r.HomeNamespace() == v:
		case spec.Selector.DataplaneTags[k] == v && v != "":
			named++
		case k == tagService && slices.Contains(spec.Identities, resources.ServiceIdentity{Type: "ServiceTag", Value: v}):
			said = true
		default:
			return 0, false
		}
	}
	if said && named == 0 { // the service is the tag
		return 0, true
	}
	return len(spec.Selector.DataplaneTags) - named, true
}

// away returns what other zones have for the tags.
func (t *Tagged) away(in *TaggedInput) (out []TaggedAway) {
	for _, d := range in.Services {
		more, ok := t.covered(d.Resource)
		if !ok || d.zone == in.Zone || d.zone == "" || len(d.ports) == 0 {
			continue
		}
		out = append(out, TaggedAway{Zone: d.zone, Service: d, Section: d.ports[0].section(),
			namespace: resources.OwnerOf(d.Resource, t.system).Namespace, protocol: protocolAt(d.Resource, 0), more: more})
	}
	for _, r := range in.Ingresses {
		if r.Zone() == in.Zone || r.Zone() == "" {
			continue
		}
		spec, err := resources.SpecAs[meshpb.ZoneIngress](r)
		if err != nil {
			continue
		}
		for _, s := range spec.GetAvailableServices() {
			if s.GetMesh() == in.Mesh && !s.GetExternalService() && t.listed(r.Zone(), s.GetTags()) {
				out = append(out, TaggedAway{Zone: r.Zone(), namespace: t.ownerOf(s.GetTags()[resources.LabelNamespace]),
					protocol: s.GetTags()[tagProtocol]})
			}
		}
	}
	return out
}

// listed reports whether a service that an ingress lists has the tags.
func (t *Tagged) listed(zone string, tags map[string]string) bool {
	for k, v := range t.Tags {
		if have := tags[k]; have != v && (k != resources.LabelZone || zone != v) || v == "" {
			return false
		}
	}
	return true
}

func protocolAt(r *resources.Resource, i int) string {
	if spec, err := resources.SpecAs[resources.MeshService](r); err == nil && i < len(spec.Ports) {
		return spec.Ports[i].AppProtocol
	}
	return ""
}

// keepNearest keeps one for each zone: a service before a list, and the service that has the fewest tags beyond those
// of the outbound.
func (t *Tagged) keepNearest(all []TaggedAway) {
	all = slices.DeleteFunc(all, func(a TaggedAway) bool { return a.namespace != t.Namespace })
	slices.SortStableFunc(all, func(a, b TaggedAway) int {
		if c := cmp.Or(cmp.Compare(a.Zone, b.Zone), compareBools(a.Service == nil, b.Service == nil)); c != 0 || a.Service == nil {
			return c
		}
		return cmp.Or(cmp.Compare(a.more, b.more), cmp.Compare(a.Service.KRI.String(), b.Service.KRI.String()))
	})
	t.Away = slices.CompactFunc(all, func(a, b TaggedAway) bool { return a.Zone == b.Zone })
}
