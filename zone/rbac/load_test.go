package rbac_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// loadResources reads a YAML file of resources in the form that users write, plus `zone`, the zone where each was
// written. It adds the labels that servers compute.
func loadResources(t *testing.T, file string) []*resources.Resource {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []*resources.Resource
	for dec := yaml.NewDecoder(bytes.NewReader(raw)); ; {
		var doc struct {
			Type, Mesh, Name, Namespace, Zone string
			Labels                            map[string]string
			Spec                              map[string]any
		}
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		body, err := json.Marshal(doc.Spec)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := resources.NewSpec(resources.Type(doc.Type), body)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		r := &resources.Resource{Labels: doc.Labels, Spec: spec}
		r.Key = resources.Key{Type: resources.Type(doc.Type), Mesh: doc.Mesh, Namespace: doc.Namespace, Name: doc.Name}
		r = r.Clone()
		home := resources.Home{Zone: doc.Zone, SystemNamespace: resources.DefaultSystemNamespace}
		for k, v := range home.ComputedLabels(r) {
			r.Labels[k] = v
		}
		out = append(out, r)
	}
}

// loadInbounds returns the rules of each inbound of the file's Dataplane, by section, under the file's policies.
func loadInbounds(t *testing.T, file string) map[string]inbound {
	t.Helper()
	var policies []*matching.Policy
	var proxy *matching.Proxy
	for _, r := range append(loadResources(t, "testdata/backend.yaml"), loadResources(t, file)...) {
		if r.Type != resources.TypeDataplane {
			policies = append(policies, matching.NewPolicy(r, resources.DefaultSystemNamespace))
			continue
		}
		var err error
		if proxy, err = matching.NewProxy(r); err != nil {
			t.Fatal(err)
		}
	}
	out := map[string]inbound{}
	for i := range proxy.Inbounds {
		in := &proxy.Inbounds[i]
		out[in.Section()] = inbound{in.Protocol, matching.Inbound(proxy, in, policies)}
	}
	return out
}

type inbound struct {
	protocol matching.Protocol
	rules    matching.Rules
}
