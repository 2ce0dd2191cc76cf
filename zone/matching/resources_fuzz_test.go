package matching_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// FuzzMergeConfs: any two confs merge into one JSON value, in canonical form.
func FuzzMergeConfs(f *testing.F) {
	f.Add([]byte(`{"a":1,"appendA":[1]}`), []byte(`{"a":null,"appendA":[2],"b":{"c":[]}}`))
	f.Add([]byte(`[1]`), []byte(`{"appendA":null}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		merged, err := matching.MergeConfs(a, b)
		if err != nil {
			return
		}
		again, err := matching.MergeConfs(merged)
		if err != nil || !json.Valid(merged) || !bytes.Equal(merged, again) {
			t.Fatalf("%s and %s merge to %s, again %s, %v", a, b, merged, again, err)
		}
	})
}

// FuzzPolicy: matching returns a result for any spec from a peer.
func FuzzPolicy(f *testing.F) {
	f.Add([]byte(`{"to":[{"targetRef":{"kind":"MeshService","labels":{"app":"x"}},"default":{"a":1}}]}`))
	f.Add([]byte(`{"from":[{"targetRef":{"kind":"MeshSubset","tags":{"a":"b"}},"default":{"action":"Deny"}}]}`))
	f.Add([]byte(`{"rules":[{"matches":[{"path":{"type":"Exact","value":"/"}},{}],"default":[1]}]}`))
	f.Add([]byte(`{"to":[{"targetRef":{"kind":"MeshHTTPRoute","name":"r"},"rules":[{"matches":7,"default":null}]}]}`))
	base := resourceCase{Resources: []document{
		{Type: "MeshService", Name: "s", Zone: "zone-1", Labels: map[string]string{"app": "x"}, Spec: sections},
	}}
	f.Fuzz(func(t *testing.T, raw []byte) {
		c := base
		w := c.world(t)
		for _, d := range resources.Descriptors() {
			if d.Policy == nil {
				continue
			}
			spec, err := resources.NewSpec(d.Type, raw)
			if err != nil {
				return
			}
			r := &resources.Resource{Key: resources.Key{Type: d.Type, Mesh: "default", Name: "p"}, Spec: spec}
			r.Labels = resources.Home{Zone: "zone-1"}.ComputedLabels(r)
			answer(t, w, r)
		}
	})
}

func answer(t *testing.T, w *world, r *resources.Resource) {
	p := matching.NewPolicy(r, resources.DefaultSystemNamespace)
	policies := []*matching.Policy{p}
	in := matching.InboundInput{Type: r.Type, Proxy: w.proxy, Inbound: &w.proxy.Inbounds[0], Policies: policies}
	to := matching.ToInput{Type: r.Type, Proxy: w.proxy, Policies: policies, Destinations: w.destinations}
	rules, table := matching.To(to), matching.NewRouteTable(to)
	for _, d := range w.destinations.All() {
		rules.For(d.Key())
		table.For(d.Key())
	}
	for _, rule := range matching.From(in).Rules {
		if len(rule.Origins) == 0 {
			t.Fatal("a rule of nobody")
		}
	}
	matching.InboundConfs(in)
	matching.ProxyConf(r.Type, w.proxy, policies)
	w.destinations.Problems(p)
	matching.Inbound(w.proxy, in.Inbound, policies)
}
