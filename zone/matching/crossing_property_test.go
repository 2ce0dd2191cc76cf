package matching_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

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
	namespace string // of copies
}

// sites are the global, on Universal, and two zones in sync. The zones keep copies in the system namespace or in none.
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
	crossing, mapping := exchange.NewFilter(), exchange.NewMapping()
	carry := func(r *resources.Resource, a *exchange.Audience, to *site) {
		if crossing.Stops(r, a) != "" {
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
			SystemNamespace: resources.DefaultSystemNamespace, CopyNamespace: to.namespace,
			Lookup: func(typ resources.Type, mesh, name string) *resources.Resource {
				for _, h := range to.held {
					if h.Type == typ && h.Mesh == mesh && h.Name == name && h.Namespace == to.namespace {
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

// drawAnyRef is drawRef, sometimes with the system namespace.
func drawAnyRef(t *rapid.T, kinds ...string) map[string]any {
	ref := drawRef(t, kinds...)
	if ref["name"] != nil && rapid.IntRange(0, 3).Draw(t, "in system") == 0 {
		ref["namespace"] = resources.DefaultSystemNamespace
	}
	return ref
}

func drawSpec(t *rapid.T, typ resources.Type) *resources.Spec {
	spec := map[string]any{}
	switch typ {
	case resources.TypeDataplane:
		return dataplaneSpec(t)
	case resources.TypeMeshTrafficPermission:
		spec = map[string]any{"targetRef": drawTopLevel(t), "default": map[string]any{}}
	case resources.TypeMeshService:
		spec = map[string]any{"ports": sections["ports"]}
	case resources.TypeMeshMultiZoneService:
		spec = map[string]any{"ports": sections["ports"],
			"selector": map[string]any{"meshService": map[string]any{"matchLabels": map[string]any{"app": "x"}}}}
	case resources.TypeMeshExternalService:
		spec = map[string]any{"match": map[string]any{"port": 80}}
	case resources.TypeMeshHTTPRoute, resources.TypeMeshTCPRoute:
		backend := drawAnyRef(t, resources.KindMeshService, resources.KindMeshMultiZoneService,
			resources.KindMeshExternalService)
		delete(backend, "sectionName")
		backend["port"] = 80
		spec["to"] = []any{map[string]any{
			"targetRef": drawAnyRef(t, resources.KindMeshService),
			"rules":     []any{map[string]any{"default": map[string]any{"backendRefs": []any{backend}}}},
		}}
	default:
		var to []any
		for range rapid.IntRange(1, 2).Draw(t, "items") {
			ref := drawAnyRef(t, resources.KindMesh, resources.KindMeshService, resources.KindMeshService,
				resources.KindMeshHTTPRoute, resources.KindMeshTCPRoute,
				resources.KindMeshMultiZoneService, resources.KindMeshExternalService)
			to = append(to, map[string]any{"targetRef": ref, "default": map[string]any{"a": 1}})
		}
		spec = map[string]any{"targetRef": drawTopLevel(t), "to": to}
	}
	out, err := resources.NewSpecOf(typ, spec)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func drawTopLevel(t *rapid.T) map[string]any {
	labels := map[string]any{
		rapid.SampledFrom([]string{"app", "kuma.io/zone", "k8s.kuma.io/namespace", "kuma.io/display-name"}).Draw(t,
			"label"): rapid.SampledFrom([]string{"x", "zone-1", "zone-2", "ns-a", "one"}).Draw(t, "value"),
	}
	switch rapid.IntRange(0, 3).Draw(t, "target") {
	case 0:
		return map[string]any{"kind": "Dataplane", "labels": labels}
	case 1:
		return map[string]any{"kind": "MeshSubset", "tags": labels}
	case 2:
		return map[string]any{"kind": "Dataplane", "name": drawName.Draw(t, "proxy"),
			"namespace": rapid.SampledFrom([]string{"ns-a", "ns-b"}).Draw(t, "ns")}
	}
	return map[string]any{"kind": "Mesh"}
}

// references returns a policy's references by name, by their field.
func references(t *rapid.T, r *resources.Resource) map[string]resources.BackendRef {
	out := map[string]resources.BackendRef{}
	spec, err := resources.SpecAs[resources.Policy](r)
	if err != nil {
		t.Fatal(err)
	}
	for i, to := range spec.To {
		out[fmt.Sprintf("to[%d]", i)] = resources.BackendRef{TargetRef: to.TargetRef}
		for j, ref := range backendsOf(t, &spec.To[i]) {
			out[fmt.Sprintf("to[%d].backendRefs[%d]", i, j)] = ref
		}
	}
	maps.DeleteFunc(out, func(_ string, ref resources.BackendRef) bool { return ref.Name == "" })
	return out
}

func backendsOf(t *rapid.T, to *resources.PolicyTo) []resources.BackendRef {
	var rules []resources.HTTPRouteRule
	if len(to.Rules) > 0 {
		decode(t, to.Rules, &rules)
	}
	var out []resources.BackendRef
	for _, rule := range rules {
		out = append(out, rule.Default.BackendRefs...)
	}
	return out
}

// checkUntil checks a property until it has judged enough: what rapid draws may have little to judge, above all in -short
// runs, which draw a fifth.
func checkUntil(t *testing.T, enough int, judged *int, property func(*rapid.T)) {
	t.Helper()
	for round := 0; *judged < enough; round++ {
		if round == 20 {
			t.Fatalf("only %d were judged in %d rounds, want %d", *judged, round, enough)
		}
		rapid.Check(t, property)
		if t.Failed() {
			return
		}
	}
}

// TestRewriteThenResolve: a reference by name means the same resource on every server that has both, and never another
// one.
func TestRewriteThenResolve(t *testing.T) {
	compared := 0
	checkUntil(t, 20, &compared, func(rt *rapid.T) {
		s := drawSites(rt)
		s.plain = rapid.Bool().Draw(rt, "plain")
		s.spread(rt)
		seen := map[string]*matching.Destinations{}
		for _, x := range s.all() {
			seen[x.zone] = x.destinations(rt)
		}
		meaning := func(x *site, r *resources.Resource, ref resources.BackendRef) (resources.KRI, string) {
			from := matching.NewPolicy(r, resources.DefaultSystemNamespace).Referrer()
			target, problem := seen[x.zone].ResolveBackend(from, &ref)
			if problem != "" {
				return resources.KRI{}, problem
			}
			return target.Destination.KRI, ""
		}
		for _, home := range []*site{s.one, s.two} {
			for _, r := range home.held {
				if r.Descriptor().Policy == nil || r.Zone() != home.zone ||
					r.Labels[resources.LabelOrigin] != resources.OriginZone {
					continue
				}
				for _, away := range s.all() {
					i := slices.IndexFunc(away.held, func(c *resources.Resource) bool { return away != home && resources.KRIOf(c) == resources.KRIOf(r) })
					if i < 0 {
						continue
					}
					moved := references(rt, away.held[i])
					for place, ref := range references(rt, r) {
						want, problem := meaning(home, r, ref)
						got, lost := meaning(away, away.held[i], moved[place])
						switch {
						case problem == "" && away.holds(want) && got != want:
							rt.Fatalf("%s %s %+v means %s at home, and %q %q as %+v in %q", resources.KRIOf(r), place,
								ref, want, got, lost, moved[place], away.zone)
						case problem == "" && !away.holds(want) && lost == "":
							rt.Fatalf("%s %s %+v means %s at home, and another, %s, as %+v in %q", resources.KRIOf(r),
								place, ref, want, got, moved[place], away.zone)
						}
						if problem == "" {
							compared++
						}
					}
				}
			}
		}
	})
}

func decode(t *rapid.T, raw json.RawMessage, v any) {
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatal(err)
	}
}

// dataplaneSpec returns a Dataplane spec whose tags contradict its labels.
func dataplaneSpec(t *rapid.T) *resources.Spec {
	tags := `{"kuma.io/zone":"zone-1","k8s.kuma.io/namespace":"ns-a","app":"x","kuma.io/display-name":"one"}`
	spec, err := resources.NewSpec(resources.TypeDataplane,
		[]byte(`{"networking":{"address":"10.0.0.1","inbound":[{"port":80,"tags":`+tags+`}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// TestContainmentAcrossZones: whatever references, labels and peers claim, on no server does a policy change more than
// its role at home permits. Consumers and workload owners change proxies of their own zone and namespace, producers
// traffic to their own destinations.
func TestContainmentAcrossZones(t *testing.T) {
	checked := 0
	checkUntil(t, 100, &checked, func(rt *rapid.T) {
		s := drawSites(rt)
		s.lies, s.plain = rapid.Bool().Draw(rt, "lies"), rapid.Bool().Draw(rt, "plain")
		written := map[resources.KRI]*resources.Resource{}
		for _, x := range s.all() {
			for _, r := range x.held {
				written[resources.KRIOf(r)] = r
			}
		}
		s.spread(rt)
		for _, x := range s.all() {
			c := &containment{t: rt, written: written, destinations: map[matching.ResourceKey]*matching.Destination{}}
			destinations := x.destinations(rt)
			for _, d := range destinations.All() {
				c.destinations[d.Key()] = d
			}
			var policies []*matching.Policy
			for _, r := range x.held {
				if r.Descriptor().Policy != nil {
					policies = append(policies, matching.NewPolicy(r, resources.DefaultSystemNamespace))
				}
			}
			for _, r := range x.held {
				if r.Type == resources.TypeDataplane {
					c.check(r, policies, destinations)
				}
			}
			checked += c.checked
		}
	})
}

// containment checks the effects of policies on one server.
type containment struct {
	t            *rapid.T
	written      map[resources.KRI]*resources.Resource
	destinations map[matching.ResourceKey]*matching.Destination
	proxy        *matching.Proxy
	checked      int
}

func (c *containment) check(dataplane *resources.Resource, policies []*matching.Policy,
	destinations *matching.Destinations) {
	proxy, err := matching.NewProxy(dataplane)
	if err != nil {
		c.t.Fatal(err)
	}
	c.proxy = proxy
	for i := range proxy.Inbounds {
		rules := matching.Inbound(proxy, &proxy.Inbounds[i], policies)
		for j := range rules.Items {
			c.reaches(rules.Items[j].Origin)
		}
	}
	rules := matching.To(matching.ToInput{Type: resources.TypeMeshRetry, Proxy: proxy, Policies: policies,
		Destinations: destinations})
	for key, rule := range rules.ResourceRules {
		for _, o := range rule.Origins {
			c.reaches(o.Policy.KRI)
			if d := c.destinations[key.Whole()]; d == nil || d.Resource.Type == resources.TypeMeshService {
				c.changes(o.Policy.KRI, d)
			}
		}
	}
	for key, rule := range rules.RouteRules {
		for _, o := range rule.Origins {
			c.reaches(o.Policy.KRI)
			if route := c.destinations[key.Route]; !sameHome(c.written[o.Policy.KRI], route.Resource) {
				c.changes(o.Policy.KRI, c.destinations[key.Service.Whole()])
			}
		}
	}
}

// reaches fails if a policy has an effect on the proxy that its role does not allow.
func (c *containment) reaches(policy resources.KRI) {
	r := c.written[policy]
	c.checked++
	switch role := resources.RoleOf(r, resources.DefaultSystemNamespace); role {
	case resources.RoleConsumer, resources.RoleWorkloadOwner:
		if c.proxy.Zone != r.Zone() || c.proxy.Namespace != r.HomeNamespace() {
			c.t.Fatalf("%s %s changes a proxy of %q/%q", role, policy, c.proxy.Zone, c.proxy.Namespace)
		}
	case resources.RoleSystem:
		if r.Zone() != "" && c.proxy.Zone != r.Zone() {
			c.t.Fatalf("%s of the system changes a proxy of %q", policy, c.proxy.Zone)
		}
	}
}

// changes fails if a producer changes traffic to a destination that is not its own. A nil destination means the whole
// mesh.
func (c *containment) changes(policy resources.KRI, d *matching.Destination) {
	r := c.written[policy]
	if resources.RoleOf(r, resources.DefaultSystemNamespace) == resources.RoleProducer &&
		(d == nil || !sameHome(r, d.Resource)) {
		c.t.Fatalf("producer %s changes traffic to %v", policy, d)
	}
}

func sameHome(a, b *resources.Resource) bool {
	return a.Zone() == b.Zone() && a.HomeNamespace() == b.HomeNamespace()
}
