package matching_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// notMade excludes the cache Made from comparisons of rules.
var notMade = cmpopts.IgnoreFields(matching.Rule{}, "Made")

// caseFile is one file of testdata/inbound: Dataplanes, and cases with the rules that they get under certain policies.
type caseFile struct {
	// Section names the document and section that the cases come from.
	Section    string
	Dataplanes []document
	Cases      []inboundCase
}

type inboundCase struct {
	Name     string
	Policies []document
	// Want lists the rules of each inbound, `dataplane/section: [KRI, ...]`, in order. A rule is the KRI of its policy,
	// with `#1` for the policy's second item, and ` closed` if it denies everyone. Inbounds without rules are omitted.
	Want map[string][]string
	// Warnings are substrings of the expected warnings, each of which must occur at least once. If it is empty, there
	// must be no warnings.
	Warnings []string
}

// document is a resource as users write it, with the zone where it was written (empty for the global), and whether the
// reader holds a copy of it.
type document struct {
	Type, Mesh, Name, Namespace, Zone string
	Copy                              bool
	// Role is the role that the receiver computed for a copy with rewritten references, which no longer reveal it.
	Role   string
	Labels map[string]string
	Spec   map[string]any
}

func (d document) resource(t testing.TB, standard resources.Type) *resources.Resource {
	t.Helper()
	if d.Type == "" {
		d.Type = string(standard)
	}
	if d.Mesh == "" {
		d.Mesh = "default"
	}
	body, err := json.Marshal(d.Spec)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := resources.NewSpec(resources.Type(d.Type), body)
	if err != nil {
		t.Fatal(err)
	}
	r := &resources.Resource{Labels: maps.Clone(d.Labels), Spec: spec}
	r.Key = resources.Key{Type: resources.Type(d.Type), Mesh: d.Mesh, Namespace: d.Namespace, Name: d.Name}
	r = r.Clone()
	home := resources.Home{Zone: d.Zone, SystemNamespace: resources.DefaultSystemNamespace}
	maps.Copy(r.Labels, home.ComputedLabels(r))
	if d.Role != "" {
		r.Labels[resources.LabelPolicyRole] = d.Role
	}
	if d.Copy {
		r.Namespace = ""
		r.Name = hashing.Name(d.Mesh, d.Name, d.Zone, d.Namespace)
	}
	return r
}

func readCases(t testing.TB, file string) caseFile {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out caseFile
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(&out); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return out
}

func (f caseFile) proxies(t testing.TB) []*matching.Proxy {
	t.Helper()
	var out []*matching.Proxy
	for _, d := range f.Dataplanes {
		p, err := matching.NewProxy(d.resource(t, resources.TypeDataplane))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

func (c inboundCase) policies(t testing.TB) []*matching.Policy {
	t.Helper()
	var out []*matching.Policy
	for _, d := range c.Policies {
		out = append(out, matching.NewPolicy(d.resource(t, resources.TypeMeshTrafficPermission),
			resources.DefaultSystemNamespace))
	}
	return out
}

// eachCase runs f for every case of testdata/inbound, and requires that there are many.
func eachCase(t *testing.T, f func(t *testing.T, proxies []*matching.Proxy, c inboundCase)) {
	files, err := filepath.Glob("testdata/inbound/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, file := range files {
		cases := readCases(t, file)
		for _, c := range cases.Cases {
			count++
			t.Run(filepath.Base(file)+"/"+c.Name, func(t *testing.T) { f(t, cases.proxies(t), c) })
		}
	}
	if count < 60 {
		t.Errorf("only %d cases", count)
	}
}

// TestInboundCases runs testdata/inbound, with the policies in the given order and in reverse.
func TestInboundCases(t *testing.T) {
	eachCase(t, func(t *testing.T, proxies []*matching.Proxy, c inboundCase) {
		policies := c.policies(t)
		got, warnings := inboundRules(proxies, policies)
		want := c.Want
		if want == nil {
			want = map[string][]string{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("rules (-want +got):\n%s", diff)
		}
		for _, text := range c.Warnings {
			if !slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, text) }) {
				t.Errorf("no warning says %q, but %q", text, warnings)
			}
		}
		if len(c.Warnings) == 0 && len(warnings) > 0 {
			t.Errorf("warnings %q", warnings)
		}
		slices.Reverse(policies)
		if reversed, _ := inboundRules(proxies, policies); !cmp.Equal(got, reversed) {
			t.Errorf("the order of policies matters:\n%s", cmp.Diff(got, reversed, notMade))
		}
	})
}

// TestIndexFindsWhatSelects: the index yields the same rules for every proxy.
func TestIndexFindsWhatSelects(t *testing.T) {
	eachCase(t, func(t *testing.T, proxies []*matching.Proxy, c inboundCase) {
		policies := c.policies(t)
		index := matching.NewIndex(policies)
		for _, proxy := range proxies {
			for i := range proxy.Inbounds {
				in := &proxy.Inbounds[i]
				if diff := cmp.Diff(matching.Inbound(proxy, in, policies), index.Inbound(proxy, in), notMade); diff != "" {
					t.Errorf("%s/%s (-all +index):\n%s", proxy.Name, in.Section(), diff)
				}
			}
			for _, p := range policies {
				if matching.Selects(p, proxy) && !slices.Contains(index.Candidates(proxy), p) {
					t.Errorf("%s selects %s but is no candidate", p.KRI, proxy.Name)
				}
			}
		}
	})
}

func inboundRules(proxies []*matching.Proxy, policies []*matching.Policy) (rules map[string][]string,
	warnings []string) {
	rules = map[string][]string{}
	for _, proxy := range proxies {
		for i := range proxy.Inbounds {
			in := &proxy.Inbounds[i]
			answer := matching.Inbound(proxy, in, policies)
			for _, r := range answer.Items {
				text := r.Origin.String()
				if r.Index > 0 {
					text += fmt.Sprintf("#%d", r.Index)
				}
				if r.Closed {
					text += " closed"
				}
				key := proxy.Name + "/" + in.Section()
				rules[key] = append(rules[key], text)
			}
			for _, w := range answer.Warnings {
				warnings = append(warnings, w.String())
			}
		}
	}
	return rules, warnings
}
