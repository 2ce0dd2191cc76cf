package matching_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// TestContainmentOutbound: whatever references, labels and names say, a producer's items contribute to no rule for a
// destination outside its zone and namespace, and those of consumers and workload owners to no rule of a proxy outside
// theirs.
func TestContainmentOutbound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(rt).world(t)
		rules := w.to()
		check := func(p *matching.Policy, d *matching.Destination) {
			r := p.Resource
			switch p.Role {
			case resources.RoleProducer:
				if d == nil || d.Resource.Zone() != r.Zone() || d.Resource.HomeNamespace() != r.HomeNamespace() {
					rt.Fatalf("producer %s changes traffic to %v", p.KRI, d)
				}
			case resources.RoleConsumer, resources.RoleWorkloadOwner:
				if w.proxy.Zone != r.Zone() || w.proxy.Namespace != r.HomeNamespace() {
					rt.Fatalf("%s %s changes a proxy of %s/%s", p.Role, p.KRI, w.proxy.Zone, w.proxy.Namespace)
				}
			}
		}
		for _, d := range w.destinations.All() {
			key := d.Key()
			if d.Resource.Type == resources.TypeMeshService {
				for _, section := range append(d.Sections(), "") {
					key.Section = section
					if rule := rules.For(key); rule != nil {
						for _, o := range rule.Origins {
							check(o.Policy, d)
						}
					}
				}
			}
		}
		for key, rule := range rules.RouteRules {
			for _, o := range rule.Origins {
				if o.Policy.Role != resources.RoleProducer || !meansRoute(o, w, key.Route) {
					check(o.Policy, destinationOf(w, key.Service))
				}
			}
		}
		for _, rule := range rules.Rules {
			for _, o := range rule.Origins {
				if r := o.Policy.Resource; o.Policy.Role == resources.RoleProducer &&
					(w.proxy.Zone != r.Zone() || w.proxy.Namespace != r.HomeNamespace()) {
					rt.Fatalf("producer %s changes a tag's traffic elsewhere", o.Policy.KRI)
				}
			}
		}
	})
}

// meansRoute reports whether an item means the route itself, as its producer's own.
func meansRoute(o matching.Origin, w *world, route matching.ResourceKey) bool {
	spec, err := resources.SpecAs[resources.Policy](o.Policy.Resource)
	if err != nil {
		return false
	}
	targets, _ := w.destinations.Resolve(o.Policy.Referrer(), &spec.To[o.RuleIndex].TargetRef)
	return slices.ContainsFunc(targets, func(t matching.Target) bool {
		r := t.Destination.Resource
		return t.Key() == route && r.Zone() == o.Policy.Resource.Zone() &&
			r.HomeNamespace() == o.Policy.Resource.HomeNamespace()
	})
}

func destinationOf(w *world, key matching.ResourceKey) *matching.Destination {
	for _, d := range w.destinations.All() {
		if d.Key() == key.Whole() {
			return d
		}
	}
	return nil
}
