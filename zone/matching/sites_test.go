package matching_test

import (
	"slices"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// site is one server with all of its resources: its own and copies. The global's zone is empty.
type site struct {
	zone      string
	held      []*resources.Resource
	home      resources.Home
	namespace string // of references to copies
}

// sites are the global, on Universal, and two zones in sync. The zones refer to copies in the system namespace or in none.
type sites struct {
	global, one, two *site
	// lies means that zones send false labels about the home and role of their resources.
	lies bool
	// plain means that zones receive references as they were written.
	plain bool
}

func (s *sites) all() []*site { return []*site{s.global, s.one, s.two} }

// lie changes labels that a zone must not set.
func lie(t *rapid.T, r *resources.Resource) {
	for _, about := range []struct {
		label  string
		values []string
	}{
		{resources.LabelPolicyRole, []string{"producer", "system", "consumer"}},
		{resources.LabelOrigin, []string{"global"}},
		{resources.LabelZone, []string{"zone-1", "zone-2", ""}},
		{resources.LabelReferences, []string{`{}`, `{"to[0].targetRef":{"name":"one"}}`}},
	} {
		if rapid.Bool().Draw(t, "lie about "+about.label) {
			r.Labels[about.label] = rapid.SampledFrom(about.values).Draw(t, about.label)
		}
	}
}

// spread copies the resources of the zones and the global to all servers, by the rules of kds, in order of dependency.
func (s *sites) spread(t *rapid.T) {
	filter, mapping := exchange.NewFilter(), exchange.NewMapping()
	carry := func(r *resources.Resource, a *exchange.Audience, to *site) {
		if filter.Stops(r, a) != "" {
			return
		}
		out, err := mapping.Outbound(r, a)
		if err != nil {
			t.Fatal(err)
		}
		if s.lies && a.Direction == exchange.ZoneToGlobal {
			lie(t, out)
		}
		in, err := mapping.Inbound(out, &exchange.Arrival{
			Origin:          exchange.Origin{Direction: a.Direction, Zone: a.Zone},
			SystemNamespace: resources.DefaultSystemNamespace, OwnNamespace: to.namespace,
			Lookup: func(typ resources.Type, mesh, name string) *resources.Resource {
				for _, h := range to.held {
					if h.Type == typ && h.Mesh == mesh && h.Name == name {
						return h
					}
				}
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		to.held = append(to.held, in)
	}
	zones := []*site{s.one, s.two}
	written := [][]*resources.Resource{slices.Clone(s.one.held), slices.Clone(s.two.held)}
	for _, d := range resources.Descriptors() {
		for i, zone := range zones {
			for _, r := range written[i] {
				if r.Type == d.Type {
					carry(r, &exchange.Audience{Direction: exchange.ZoneToGlobal, Zone: zone.zone,
						Features: exchange.OwnFeatures()}, s.global)
				}
			}
		}
	}
	features := exchange.OwnFeatures()
	if s.plain {
		features &^= exchange.FeatureResolvedReferences
	}
	for _, r := range s.global.held {
		for _, zone := range zones {
			carry(r, &exchange.Audience{Direction: exchange.GlobalToZone, Zone: zone.zone, Features: features}, zone)
		}
	}
}

// destinations returns the destinations from the site's point of view.
func (s *site) destinations(t *rapid.T) *matching.Destinations {
	var all []*matching.Destination
	for _, r := range s.held {
		if matching.IsDestination(r.Type) {
			d, err := matching.NewDestination(r)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, d)
		}
	}
	return matching.NewDestinations(matching.DestinationsConfig{Zone: s.zone}, all)
}

func (s *site) holds(kri resources.KRI) bool {
	return slices.ContainsFunc(s.held, func(r *resources.Resource) bool { return resources.KRIOf(r) == kri })
}

// drawSites draws services, routes and policies of two zones and the global, all valid at home. They have references by
// display name, hashed name and labels, and display names and labels of each other.
func drawSites(t *rapid.T) *sites {
	system := resources.DefaultSystemNamespace
	copies := rapid.SampledFrom([]string{"", system})
	s := &sites{
		global: &site{}, one: &site{zone: "zone-1", namespace: copies.Draw(t, "copies in zone-1")},
		two: &site{zone: "zone-2", namespace: copies.Draw(t, "copies in zone-2")},
	}
	namespaces := rapid.SampledFrom([]string{"", "ns-a", "ns-b", system})
	for _, here := range s.all() {
		here.home = resources.Home{Zone: here.zone}
		kinds := []resources.Type{resources.TypeDataplane, resources.TypeMeshTrafficPermission,
			resources.TypeMeshService, resources.TypeMeshService, resources.TypeMeshHTTPRoute,
			resources.TypeMeshTCPRoute, resources.TypeMeshRetry, resources.TypeMeshRetry}
		if here.zone == "" {
			kinds = []resources.Type{resources.TypeMeshMultiZoneService, resources.TypeMeshExternalService,
				resources.TypeMeshRetry}
		}
		for range rapid.IntRange(0, 14).Draw(t, "resources of "+here.zone) {
			typ, namespace := rapid.SampledFrom(kinds).Draw(t, "type"), namespaces.Draw(t, "namespace")
			if here.zone == "" {
				namespace = ""
			}
			key := resources.Key{Type: typ, Mesh: "default", Namespace: namespace, Name: drawName.Draw(t, "name")}
			r := here.home.Labelled(&resources.Resource{Key: key, Labels: drawLabels(t), Spec: drawSpec(t, typ)})
			if resources.Validate(r, here.home) == nil &&
				!slices.ContainsFunc(here.held, func(h *resources.Resource) bool { return h.Key == key }) {
				here.held = append(here.held, r)
			}
		}
	}
	return s
}
