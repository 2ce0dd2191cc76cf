package inspect

import (
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// TestForecastPolicy checks the proxies of a policy in its current and its new version, in the new state of the store.
func TestForecastPolicy(t *testing.T) {
	home := resources.Home{Zone: "zone-1", SystemNamespace: resources.DefaultSystemNamespace}
	written := func(typ resources.Type, namespace, name, app, spec string) *resources.Resource {
		body, err := resources.NewSpec(typ, []byte(spec))
		if err != nil {
			t.Fatal(err)
		}
		key := resources.Key{Type: typ, Mesh: "default", Namespace: namespace, Name: name}
		return home.Labelled(&resources.Resource{Key: key, Labels: map[string]string{"app": app}, Spec: body})
	}
	proxy := func(namespace, name, app string) *resources.Resource {
		return written(resources.TypeDataplane, namespace, name, app,
			`{"networking":{"address":"10.0.0.1","inbound":[{"port":80}]}}`)
	}
	mesh, err := resources.NewSpec(resources.TypeMesh, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	there := []*resources.Resource{
		{Key: resources.Key{Type: resources.TypeMesh, Name: "default"}, Spec: mesh},
		proxy("a", "one", "x"), proxy("a", "two", "y"), proxy("b", "three", "x"),
		written(resources.TypeMeshService, "a", "svc", "x", `{"ports":[{"port":80}]}`),
	}
	// complete forecasts a change in a store that holds the current resources and the old version.
	complete := func(c *api.PreviewChange, crosses func(*resources.Resource, string) bool) {
		s := store.NewMemory()
		defer s.Close()
		batch := store.Batch{}
		for _, r := range there {
			batch.Ops = append(batch.Ops, store.Op{Put: r})
		}
		if c.Old != nil {
			batch.Ops = append(batch.Ops, store.Op{Put: c.Old})
		}
		if _, err := s.Apply(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		h := &handlers{views: &views{config: &Config{Store: s, Zone: "zone-1", SystemNamespace: home.SystemNamespace,
			Crosses: crosses}}}
		preview := &api.Preview{After: store.Overlay(s.Snapshot(), []*resources.Resource{c.New}),
			Changes: []api.PreviewChange{*c}}
		if err := h.forecast(preview); err != nil {
			t.Fatal(err)
		}
		if c.New.Descriptor().Policy != nil {
			c.Forecast.Warnings = append(c.Forecast.Warnings,
				h.problemWarnings(preview.After, matching.NewPolicy(c.New, home.SystemNamespace), nil)...)
		}
	}
	policy := func(spec string) *resources.Resource { return written(resources.TypeMeshTimeout, "a", "p", "", spec) }
	const one, two, three = "kri_dp_default_zone-1_a_one_", "kri_dp_default_zone-1_a_two_",
		"kri_dp_default_zone-1_b_three_"
	for name, c := range map[string]struct {
		old, put, result string
		want             []string
		warning          string
	}{
		"new": {"", `{"default":{}}`, api.ResultCreated, []string{one, two}, ""},
		"both versions": {`{"targetRef":{"kind":"Dataplane","labels":{"app":"x"}},"default":{}}`,
			`{"targetRef":{"kind":"Dataplane","name":"two"},"default":{}}`, api.ResultUpdated, []string{one, two}, ""},
		"unchanged": {`{"default":{}}`, `{"default":{}}`, api.ResultUnchanged, []string{}, ""},
		"a producer": {"", `{"to":[{"targetRef":{"kind":"MeshService","name":"svc"},"default":{}}]}`,
			api.ResultCreated, []string{one, two, three}, ""},
		"a broken reference": {"", `{"to":[{"targetRef":{"kind":"MeshService","name":"none","namespace":"b"},"default":{}}]}`, api.ResultCreated, []string{one, two}, "resolves to nothing"},
		"other proxies' name": {"", `{"targetRef":{"kind":"Dataplane","name":"three","namespace":"b"},"default":{}}`,
			api.ResultCreated, []string{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			change := api.PreviewChange{New: policy(c.put),
				Forecast: &api.ForecastItem{BatchedItem: api.BatchedItem{Result: c.result}}}
			if c.old != "" {
				change.Old = policy(c.old)
			}
			complete(&change, nil)
			if got := change.Forecast.Proxies; !slices.Equal(got.Items, c.want) || got.Total != len(c.want) {
				t.Errorf("got %+v, want %q", got, c.want)
			}
			if got := strings.Join(change.Forecast.Warnings, "\n"); !strings.Contains(got, c.warning) ||
				c.warning == "" && got != "" {
				t.Errorf("warnings %q", got)
			}
		})
	}
	shadow := policy(`{"default":{}}`)
	shadow.Labels[resources.LabelEffect] = resources.EffectShadow
	nowhere := func(*resources.Resource, string) bool { return false }
	ofGlobal := (resources.Home{}).Labelled(policy(`{"default":{}}`))
	delete(ofGlobal.Labels, resources.LabelZone)
	for name, c := range map[string]struct {
		put     *resources.Resource
		crosses func(*resources.Resource, string) bool
		want    int
	}{
		"a policy that is not enforced": {shadow, nil, 0}, "a Dataplane": {proxy("a", "one", "x"), nil, 1},
		"of the global": {ofGlobal, nil, 3}, "of the global, and stays there": {ofGlobal, nowhere, 0},
	} {
		change := api.PreviewChange{New: c.put,
			Forecast: &api.ForecastItem{BatchedItem: api.BatchedItem{Result: api.ResultCreated, KRI: one}}}
		if complete(&change, c.crosses); change.Forecast.Proxies.Total != c.want {
			t.Errorf("%s: got %+v", name, change.Forecast.Proxies)
		}
	}
	there = append(there, written(resources.TypeTrafficTarget, "a", "target", "",
		`{"destination":{"kind":"ServiceAccount","name":"one","namespace":"a"},"rules":[{"kind":"HTTPRouteGroup","name":"routes"}],"sources":[{"kind":"ServiceAccount","name":"x","namespace":"a"}]}`))
	there[1].Labels[resources.LabelServiceAccount] = "one"
	for name, want := range map[string]int{"routes": 1, "others": 0} {
		routes := api.PreviewChange{New: written(resources.TypeHTTPRouteGroup, "a", name, "",
			`{"matches":[{"name":"all","pathRegex":"/x"}]}`),
			Forecast: &api.ForecastItem{BatchedItem: api.BatchedItem{Result: api.ResultUpdated}}}
		if complete(&routes, nil); routes.Forecast.Proxies.Total != want {
			t.Errorf("routes %s: got %+v", name, routes.Forecast.Proxies)
		}
	}
	service := api.PreviewChange{New: written(resources.TypeMeshService, "a", "new", "", `{}`),
		Forecast: &api.ForecastItem{}}
	if complete(&service, nil); service.Forecast.Proxies != nil {
		t.Errorf("a service: got %+v", service.Forecast.Proxies)
	}
}
