package matching_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

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
