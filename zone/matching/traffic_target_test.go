package matching_test

import (
	"bytes"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// trafficCase is one case of testdata/traffic.
type trafficCase struct {
	Name string
	// Zone is where the documents are written; empty is the global.
	Zone      string
	Documents string
	// Trusts are the trust domains of the MeshTrusts.
	Trusts []string
	// Allowed holds requests, each with the policy that allows it.
	Allowed map[string]string
	Denied  []string
	// Problems lists the invalid fields of all TrafficTargets.
	Problems []string
}

// TestTrafficTargets queries the evaluator for the proxy of a service account in zone-1, by list and by index.
func TestTrafficTargets(t *testing.T) {
	data, err := os.ReadFile("testdata/traffic/seed003.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []trafficCase }
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&file); err != nil {
		t.Fatal(err)
	}
	proxy, err := matching.NewProxy(document{
		Name: "api", Namespace: "default", Zone: "zone-1",
		Labels: map[string]string{resources.LabelServiceAccount: "api-service"},
		Spec: map[string]any{"networking": map[string]any{"inbound": []any{
			map[string]any{"port": 8080, "tags": map[string]any{"kuma.io/protocol": "http"}},
			map[string]any{"port": 9090, "tags": map[string]any{"kuma.io/protocol": "http"}},
		}}},
	}.resource(t, resources.TypeDataplane))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			policies := c.policies(t)
			var problems []string
			for _, p := range policies {
				for _, w := range p.Problems() {
					problems = append(problems, w.Field)
				}
			}
			if slices.Sort(problems); !slices.Equal(slices.Compact(problems), c.Problems) {
				t.Errorf("problems: want %q, got %q", c.Problems, problems)
			}
			index := matching.NewIndex(policies)
			verdict := func(text string) rbac.Decision {
				in, request := parseTraffic(t, proxy, text)
				d := rbac.Evaluate(matching.Inbound(proxy, in, policies), request).Enforced
				if other := rbac.Evaluate(index.Inbound(proxy, in), request).Enforced; other != d {
					t.Errorf("%s: by index %v, by list %v", text, other, d)
				}
				return d
			}
			for text, by := range c.Allowed {
				if d := verdict(text); !d.Allowed || d.Name != by {
					t.Errorf("%s: want allowed by %s, got %+v", text, by, d)
				}
			}
			for _, text := range c.Denied {
				if d := verdict(text); d.Allowed {
					t.Errorf("%s: want denied, got %+v", text, d)
				}
			}
		})
	}
}

func (c *trafficCase) policies(t *testing.T) []*matching.Policy {
	t.Helper()
	docs, err := resources.DecodeDocuments([]byte(c.Documents), resources.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	home := resources.Home{Zone: c.Zone, SystemNamespace: resources.DefaultSystemNamespace}
	byType := map[resources.Type][]*resources.Resource{}
	var out []*matching.Policy
	for _, d := range docs {
		if err := resources.Validate(d, home); err != nil {
			t.Fatal(err)
		}
		r := home.Labelled(d)
		byType[r.Type] = append(byType[r.Type], r)
		if r.Type == resources.TypeMeshTrafficPermission {
			out = append(out, matching.NewPolicy(r, home.SystemNamespace))
		}
	}
	for _, domain := range c.Trusts {
		trust := document{Type: "MeshTrust", Name: domain, Spec: map[string]any{"trustDomain": domain}}
		byType[resources.TypeMeshTrust] = append(byType[resources.TypeMeshTrust], trust.resource(t, ""))
	}
	list := func(t resources.Type) iter.Seq[*resources.Resource] { return slices.Values(byType[t]) }
	return append(out, matching.TrafficTargets(home.SystemNamespace, list)...)
}

// parseTraffic parses a request in the notation of the cases.
func parseTraffic(t *testing.T, proxy *matching.Proxy, text string) (*matching.InboundPort, rbac.Request) {
	t.Helper()
	text, port, other := strings.Cut(text, " :")
	if !other {
		port = "8080"
	}
	words := strings.Fields(text)
	account, domain, named := strings.Cut(words[0], "@")
	if !named {
		domain = "default.zone-1.mesh.local"
	}
	namespace, account := "default", account
	if ns, name, ok := strings.Cut(account, "/"); ok {
		namespace, account = ns, name
	}
	r := rbac.Request{Protocol: matching.TCP,
		URISANs: []string{"spiffe://" + domain + "/ns/" + namespace + "/sa/" + account}, Headers: map[string]string{}}
	if words[1] != "TCP" {
		r.Protocol, r.Method, r.Path = matching.HTTP, words[1], words[2]
		for _, h := range words[3:] {
			name, value, _ := strings.Cut(h, "=")
			r.Headers[name] = value
		}
	}
	if _, err := strconv.Atoi(port); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return proxy.Inbound(port), r
}
