package matching_test

import (
	"fmt"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

const benchServices = 1000

// outboundBench returns a zone with many services and as many policies, all of which select the proxy: one in ten for
// the mesh, most for one service by name, some by labels, some for a section.
func outboundBench() *resourceCase {
	c := &resourceCase{}
	for i := range benchServices {
		c.Resources = append(c.Resources, document{
			Type: "MeshService", Name: fmt.Sprintf("svc-%d", i), Zone: "zone-1", Namespace: fmt.Sprintf("ns-%d", i%50),
			Labels: map[string]string{"team": fmt.Sprintf("team-%d", i%100)}, Spec: sections,
		})
	}
	for i := range benchPolicies {
		c.Resources = append(c.Resources, document{Type: "MeshTimeout", Name: fmt.Sprintf("p-%d", i), Zone: "zone-1",
			Spec: benchPolicy(i, "5s")})
	}
	return c
}

func benchPolicy(i int, timeout string) map[string]any {
	ref := map[string]any{"kind": "MeshService", "name": fmt.Sprintf("svc-%d", i), "namespace": fmt.Sprintf("ns-%d", i%50)}
	switch i % 10 {
	case 0:
		ref = map[string]any{"kind": "Mesh"}
	case 1:
		ref = map[string]any{"kind": "MeshService", "labels": map[string]any{"team": fmt.Sprintf("team-%d", i%100)}}
	case 2:
		ref["sectionName"] = "http"
	}
	conf := map[string]any{"connectionTimeout": "1s", "http": map[string]any{"requestTimeout": timeout,
		"maxStreamDuration": "1m"}}
	return map[string]any{"to": []any{map[string]any{"targetRef": ref, "default": conf}}}
}

// BenchmarkTo computes all outbound rules of one proxy under 1,000 policies and 1,000 services: cold, from resources
// with decoded specs, building every index; and again after one policy, or one service, has changed.
func BenchmarkTo(b *testing.B) {
	w := outboundBench().world(b)
	all := w.destinations.All()
	rules := func(policies []*matching.Policy, x *matching.Destinations) {
		index := matching.NewIndex(policies)
		got := matching.To(matching.ToInput{Type: resources.TypeMeshTimeout, Proxy: w.proxy,
			Policies: index.Candidates(w.proxy), Destinations: x})
		if len(got.ResourceRules) < benchServices*8/10 || len(got.Warnings) > 0 {
			b.Fatalf("%d rules, warnings %v", len(got.ResourceRules), got.Warnings)
		}
	}
	index := func(from []*matching.Destination) *matching.Destinations {
		return matching.NewDestinations(matching.DestinationsConfig{Zone: "zone-1"}, from)
	}
	b.Run("cold", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			policies, found := make([]*matching.Policy, 0, len(w.policies)), make([]*matching.Destination, 0, len(all))
			for _, p := range w.policies {
				policies = append(policies, matching.NewPolicy(p.Resource, resources.DefaultSystemNamespace))
			}
			for _, d := range all {
				again, err := matching.NewDestination(d.Resource)
				if err != nil {
					b.Fatal(err)
				}
				found = append(found, again)
			}
			rules(policies, index(found))
		}
	})
	b.Run("one policy changed", func(b *testing.B) {
		d := document{Type: "MeshTimeout", Name: "p-5", Zone: "zone-1", Spec: benchPolicy(5, "9s")}
		r := d.resource(b, resources.TypeMeshTimeout)
		b.ReportAllocs()
		for b.Loop() {
			w.policies[5] = matching.NewPolicy(r, resources.DefaultSystemNamespace)
			rules(w.policies, w.destinations)
		}
	})
	b.Run("one policy changed, ten services asked", func(b *testing.B) {
		only := map[matching.ResourceKey]bool{}
		for i := range 10 {
			only[all[i*97].Key()] = true
		}
		kept := matching.NewIndex(w.policies).Candidates(w.proxy)
		b.ReportAllocs()
		for b.Loop() {
			got := matching.To(matching.ToInput{Type: resources.TypeMeshTimeout, Proxy: w.proxy, Policies: kept,
				Destinations: w.destinations, Only: only})
			if n := len(got.ResourceRules); n < 5 || n > 30 {
				b.Fatalf("%d rules", len(got.ResourceRules))
			}
		}
	})
	b.Run("one service changed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			again, err := matching.NewDestination(all[7].Resource)
			if err != nil {
				b.Fatal(err)
			}
			all[7] = again
			rules(w.policies, index(all))
		}
	})
}

// BenchmarkFor looks up the conf of one destination. Its cost must not depend on the number of policies.
func BenchmarkFor(b *testing.B) {
	w := outboundBench().world(b)
	rules := matching.To(matching.ToInput{Type: resources.TypeMeshTimeout, Proxy: w.proxy, Policies: w.policies,
		Destinations: w.destinations})
	key := w.destinations.All()[10].Key()
	key.Section = "81"
	b.ReportAllocs()
	for b.Loop() {
		if rules.For(key) == nil {
			b.Fatal("no rule")
		}
	}
}
