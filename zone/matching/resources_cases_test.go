package matching_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// resourceFile is one file of testdata/resources.
type resourceFile struct {
	// Section names the document and section that the cases come from.
	Section string
	Cases   []resourceCase
}

// resourceCase lists the rules that one proxy gets. Rules for absent lists and maps are not computed.
type resourceCase struct {
	Name string
	// Type is the policy type under test, and the type of policies without one; MeshRetry when empty.
	Type string
	// Proxy is `dp` in zone-1 when nil.
	Proxy *document
	// Resources are services, routes and policies.
	Resources []document
	// To, Routes and For hold the ResourceRules, the RouteRules (`route > service`) and the results of lookups.
	To, Routes, For map[string]ruleWant
	// Tags holds the legacy rules of `to`, From those of the first inbound.
	Tags, From []ruleWant
	// Inbound holds the rules of the first inbound.
	Inbound []ruleWant
	// Table holds the rules of the RouteTable for each service: origin, match and conf, in order.
	Table map[string][]ruleWant
	// Complete lists the keys of all displayed rules.
	Complete []string
	Single   *ruleWant
	// Permissions lists the rules that the first inbound enforces: `policy#index` with closed, or with its conf.
	Permissions []string
	// Problems holds substrings of the conditions of each policy that has any.
	Problems map[string][]string
	// Warnings are substrings of the expected warnings, each of which must occur once. If it is empty, there must be no
	// warnings.
	Warnings []string
}

// world is a case read for matching.
type world struct {
	proxy        *matching.Proxy
	policies     []*matching.Policy
	destinations *matching.Destinations
	byName       map[string]matching.ResourceKey
	warnings     []string
}

func (c *resourceCase) world(t testing.TB) *world {
	t.Helper()
	if c.Type == "" {
		c.Type = string(resources.TypeMeshRetry)
	}
	if c.Proxy == nil {
		c.Proxy = &document{Name: "dp", Zone: "zone-1"}
	}
	if c.Proxy.Spec == nil {
		c.Proxy.Spec = map[string]any{"networking": map[string]any{"inbound": []any{map[string]any{"port": 80,
			"name": "http"}}}}
	}
	proxy, err := matching.NewProxy(c.Proxy.resource(t, resources.TypeDataplane))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{proxy: proxy, byName: map[string]matching.ResourceKey{}}
	var found []*matching.Destination
	var gateways []*resources.Resource
	for _, d := range c.Resources {
		r := d.resource(t, resources.Type(c.Type))
		if matching.IsDestination(r.Type) {
			dest, err := matching.NewDestination(r)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, dest)
			w.byName[dest.Key().String()] = dest.Key()
		}
		if r.Type == resources.TypeMeshGateway {
			gateways = append(gateways, r)
		}
		if r.Descriptor().Policy != nil {
			w.policies = append(w.policies, matching.NewPolicy(r, resources.DefaultSystemNamespace))
		}
	}
	w.destinations = matching.NewDestinations(matching.DestinationsConfig{Zone: proxy.Zone, Gateways: gateways}, found)
	return w
}

func (w *world) warn(warnings []matching.Warning) {
	for _, warning := range warnings {
		w.warnings = append(w.warnings, warning.String())
	}
}

// key returns the key of a destination in the notation of the tests, with or without a section.
func (w *world) key(t testing.TB, text string) matching.ResourceKey {
	t.Helper()
	whole, section, _ := strings.Cut(text, "#")
	key, ok := w.byName[whole]
	if !ok {
		t.Fatalf("no destination %q among %v", whole, w.byName)
	}
	key.Section = section
	return key
}

func (c *resourceCase) check(t *testing.T, w *world) {
	c.checkTo(t, w)
	c.checkTable(t, w)
	c.checkProblems(t, w)
	in := matching.InboundInput{Type: resources.Type(c.Type), Proxy: w.proxy, Inbound: &w.proxy.Inbounds[0],
		Policies: w.policies}
	if c.From != nil {
		got := matching.From(in)
		w.warn(got.Warnings)
		same(t, "from", wantTexts(c.From), subsetTexts(got.Rules))
	}
	if c.Inbound != nil {
		got := matching.InboundConfs(in)
		w.warn(got.Warnings)
		rules := []string{}
		for _, r := range got.Items {
			rules = append(rules, ruleWant{Match: rawMap(r.Match), Conf: rawMap(r.Conf), Origins: originNames(r.Origins)}.text())
		}
		same(t, "inbound", wantTexts(c.Inbound), rules)
	}
	if c.Permissions != nil {
		got := matching.Inbound(w.proxy, &w.proxy.Inbounds[0], w.policies)
		w.warn(got.Warnings)
		same(t, "permissions", c.Permissions, permissionTexts(t, got.Items))
	}
	if c.Single != nil {
		got := matching.ProxyConf(resources.Type(c.Type), w.proxy, w.policies)
		w.warn(got.Warnings)
		same(t, "single", c.Single.text(), ruleWant{Conf: rawMap(got.Conf), Origins: originNames(got.Origins)}.text())
	}
}

func (c *resourceCase) checkTable(t *testing.T, w *world) {
	if c.Table == nil {
		return
	}
	table := matching.NewRouteTable(matching.ToInput{Type: resources.Type(c.Type), Proxy: w.proxy, Policies: w.policies,
		Destinations: w.destinations})
	w.warn(table.Warnings)
	for service, want := range c.Table {
		got := []string{}
		for _, r := range table.For(w.key(t, service)) {
			if r.Route != w.key(t, r.Route.String()) {
				t.Errorf("%s is no destination", r.Route)
			}
			got = append(got, ruleWant{Match: rawMap(r.Match), Conf: rawMap(r.Conf),
				Origins: originNames([]matching.Origin{r.Origin})}.text())
		}
		same(t, "table of "+service, wantTexts(want), got)
	}
}

func (c *resourceCase) checkProblems(t *testing.T, w *world) {
	if c.Problems == nil {
		return
	}
	for _, p := range w.policies {
		want, got := c.Problems[p.KRI.Name], w.destinations.Problems(p)
		if len(want) != len(got) {
			t.Errorf("problems of %s: want %q, got %q", p.KRI, want, got)
			continue
		}
		for i := range want {
			if !strings.Contains(got[i].String(), want[i]) {
				t.Errorf("problem %d of %s: want %q, got %q", i, p.KRI, want[i], got[i])
			}
		}
	}
}

func (c *resourceCase) checkTo(t *testing.T, w *world) {
	if c.To == nil && c.Tags == nil && c.Routes == nil && c.For == nil && c.Complete == nil {
		return
	}
	got := matching.To(matching.ToInput{Type: resources.Type(c.Type), Proxy: w.proxy, Policies: w.policies,
		Destinations: w.destinations})
	w.warn(got.Warnings)
	if c.To != nil {
		want, have := map[string]string{}, map[string]string{}
		for k, r := range c.To {
			want[k] = r.text()
		}
		for k, r := range got.ResourceRules {
			have[k.String()] = resourceText(r)
		}
		same(t, "to", want, have)
	}
	if c.Tags != nil {
		same(t, "tags", wantTexts(c.Tags), subsetTexts(got.Rules))
	}
	if c.Routes != nil {
		want, have := map[string]string{}, map[string]string{}
		for k, r := range c.Routes {
			want[k] = r.text()
		}
		for k, r := range got.RouteRules {
			have[k.Route.String()+" > "+k.Service.String()] = resourceText(r)
		}
		same(t, "routes", want, have)
	}
	for k, r := range c.For {
		if route, service, ok := strings.Cut(k, " > "); ok {
			same(t, "for "+k, r.text(), resourceText(got.ForRoute(w.key(t, route), w.key(t, service))))
			continue
		}
		same(t, "for "+k, r.text(), resourceText(got.For(w.key(t, k))))
	}
	if c.Complete != nil {
		var keys []string
		for _, r := range got.Complete(w.destinations, w.proxy.Key.Mesh) {
			keys = append(keys, r.Key.String()+" "+resourceText(r))
		}
		same(t, "complete", c.Complete, keys)
	}
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

var hashedName = regexp.MustCompile(`HASH\(([^)]*)\)`)

// hashNames replaces `HASH(mesh name zone namespace)` with the name of a copy of such a resource.
func hashNames(raw []byte) []byte {
	return hashedName.ReplaceAllFunc(raw, func(found []byte) []byte {
		parts := strings.Fields(string(hashedName.FindSubmatch(found)[1]))
		return []byte(hashing.Name(parts[0], parts[1], parts[2:]...))
	})
}

// TestResourceCases runs testdata/resources, with the resources in the given order and in reverse.
func TestResourceCases(t *testing.T) {
	files, err := filepath.Glob("testdata/resources/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var cases resourceFile
		dec := yaml.NewDecoder(bytes.NewReader(hashNames(raw)))
		dec.KnownFields(true)
		if err := dec.Decode(&cases); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, c := range cases.Cases {
			count++
			t.Run(filepath.Base(file)+"/"+c.Name, func(t *testing.T) {
				w := c.world(t)
				c.check(t, w)
				c.checkWarnings(t, w.warnings)
				slices.Reverse(c.Resources)
				c.check(t, c.world(t))
			})
		}
	}
	if count < 60 {
		t.Errorf("only %d cases", count)
	}
}

func (c *resourceCase) checkWarnings(t *testing.T, warnings []string) {
	t.Helper()
	for _, text := range c.Warnings {
		if !slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, text) }) {
			t.Errorf("no warning says %q, but %q", text, warnings)
		}
	}
	if len(warnings) != len(c.Warnings) {
		t.Errorf("%d warnings, want %d: %q", len(warnings), len(c.Warnings), warnings)
	}
}
