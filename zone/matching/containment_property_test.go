package matching_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

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
