package matching_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// TestDestinationsThatMeanTheSame: another address of a service outside the mesh changes the meaning of no reference, and
// other rules of a route neither. Whatever a reference can tell apart does.
func TestDestinationsThatMeanTheSame(t *testing.T) {
	t.Parallel()
	read := func(typ resources.Type, name, label, text string) *resources.Resource {
		spec, err := resources.NewSpec(typ, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return &resources.Resource{Key: resources.Key{Type: typ, Mesh: "default", Name: name}, Spec: spec, Labels: map[string]string{"a": label}}
	}
	outside := func(label, port, endpoints string) *resources.Resource {
		return read(resources.TypeMeshExternalService, "outside", label,
			`{"match":{"port":`+port+`,"protocol":"http"},"endpoints":[`+endpoints+`]}`)
	}
	const at, elsewhere = `{"address":"192.0.2.1","port":80}`, `{"address":"192.0.2.2","port":80}`
	service := read(resources.TypeMeshService, "backend", "b", `{"ports":[{"port":80}]}`)
	route := func(to, value string) *resources.Resource {
		return read(resources.TypeMeshHTTPRoute, "route", "b", `{"to":[{"targetRef":{"kind":"MeshService","name":"`+to+`"},
			"rules":[{"matches":[{"path":{"type":"PathPrefix","value":"`+value+`"}}],"default":{}}]}]}`)
	}
	grant := read(resources.TypeMeshReferenceGrant, "grant", "b", `{}`)
	gateway := read(resources.TypeMeshGateway, "edge", "b", `{}`)
	known, before := map[string]*resources.Resource{"outside": outside("b", "80", at), "route": route("backend", "/")},
		(*matching.Destinations)(nil)
	destinations := func(c matching.DestinationsConfig, all map[string]*resources.Resource) *matching.Destinations {
		var out []*matching.Destination
		for _, r := range slices.Collect(maps.Values(all)) {
			d, err := matching.NewDestination(r)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, d)
		}
		c.Zone, c.Before = "zone-1", before
		return matching.NewDestinations(c, out)
	}
	before = destinations(matching.DestinationsConfig{}, known)
	for name, c := range map[string]struct {
		change func(map[string]*resources.Resource)
		config matching.DestinationsConfig
		same   bool
	}{
		"nothing":         {func(map[string]*resources.Resource) {}, matching.DestinationsConfig{}, true},
		"another address": {func(all map[string]*resources.Resource) { all["outside"] = outside("b", "80", elsewhere) }, matching.DestinationsConfig{}, true},
		"other rules":     {func(all map[string]*resources.Resource) { all["route"] = route("backend", "/x") }, matching.DestinationsConfig{}, true},
		"another label":   {func(all map[string]*resources.Resource) { all["outside"] = outside("c", "80", at) }, matching.DestinationsConfig{}, false},
		"another port":    {func(all map[string]*resources.Resource) { all["outside"] = outside("b", "81", at) }, matching.DestinationsConfig{}, false},
		"no address":      {func(all map[string]*resources.Resource) { all["outside"] = outside("b", "80", "") }, matching.DestinationsConfig{}, false},
		"another service": {func(all map[string]*resources.Resource) { all["route"] = route("other", "/") }, matching.DestinationsConfig{}, false},
		"one more":        {func(all map[string]*resources.Resource) { all["service"] = service }, matching.DestinationsConfig{}, false},
		"one less":        {func(all map[string]*resources.Resource) { delete(all, "outside") }, matching.DestinationsConfig{}, false},
		"a grant":         {func(map[string]*resources.Resource) {}, matching.DestinationsConfig{Grants: []*resources.Resource{grant}}, false},
		"a gateway":       {func(map[string]*resources.Resource) {}, matching.DestinationsConfig{Gateways: []*resources.Resource{gateway}}, false},
		"a namespace":     {func(map[string]*resources.Resource) {}, matching.DestinationsConfig{SystemNamespace: "other"}, false},
	} {
		all := maps.Clone(known)
		c.change(all)
		if same := destinations(c.config, all).Meaning() == before.Meaning(); same != c.same {
			t.Errorf("%s: references mean the same: %v, want %v", name, same, c.same)
		}
	}
}
