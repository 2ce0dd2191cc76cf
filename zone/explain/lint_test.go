package explain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/explain"
)

// TestLint compares the findings of a folder that triggers every check with a golden file.
func TestLint(t *testing.T) {
	findings := explain.FromFiles(load(t, "testdata/lint.yaml"), explain.Options{}).Lint("")
	golden(t, "testdata/lint.golden.yaml", findings)
	for _, check := range explain.Checks() {
		if !slices.ContainsFunc(findings, func(f explain.Finding) bool { return f.Check == check.Name }) {
			t.Errorf("nothing found by %s", check.Name)
		}
	}
	for _, f := range findings {
		if f.KRI == "" || f.Message == "" || f.Advice == "" || f.Severity != explain.Error && f.Severity != explain.Warning {
			t.Errorf("incomplete: %+v", f)
		}
	}
}

// TestLintOfGoodPolicies checks that correct policies have no findings.
func TestLintOfGoodPolicies(t *testing.T) {
	list := load(t, "testdata/lint.yaml")
	list = slices.DeleteFunc(list, func(r *resources.Resource) bool { return r.Type != resources.TypeDataplane || r.Name == "mail-1" })
	good, err := resources.DecodeDocuments([]byte(strings.TrimSpace(`
{type: MeshTrafficPermission, mesh: default, name: operator, spec: {default: {allow: [{spiffeId: {type: Prefix, value: spiffe://default.local.mesh.local/workload/}}]}}}
---
{type: MeshTrafficPermission, mesh: default, name: owner, spec: {targetRef: {kind: Dataplane, labels: {app: backend}, sectionName: http-port}, default: {
  deny: [{spiffeId: {type: Exact, value: spiffe://default.local.mesh.local/workload/closed}, method: POST}],
  allow: [{spiffeId: {type: Exact, value: spiffe://partner.example/x}, path: {type: Prefix, value: /metrics}, method: [GET, HEAD]}]}}}`)), resources.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if findings := explain.FromFiles(append(list, good...), explain.Options{}).Lint(""); len(findings) > 0 {
		t.Errorf("%+v", findings)
	}
}

// TestLintInAZone checks that a zone, which does not know the proxies of others, does not judge the global's policies
// by its own proxies.
func TestLintInAZone(t *testing.T) {
	list := load(t, "testdata/lint.yaml")
	judged := func(w *explain.World) bool {
		return slices.ContainsFunc(w.Lint("default"),
			func(f explain.Finding) bool { return f.Check == explain.CheckSelectsNothing })
	}
	if !judged(explain.FromFiles(list, explain.Options{Zone: "zone-1"})) {
		t.Error("files: no finding")
	}
	if judged(explain.FromSnapshot(stored(t, list), explain.Options{Zone: "zone-1"})) {
		t.Error("a zone judges what other zones may have")
	}
	if !judged(explain.FromSnapshot(stored(t, list), explain.Options{})) {
		t.Error("the global: no finding")
	}
}

// BenchmarkLint measures the findings of a mesh of 2,000 services, each with two proxies and five policies of its own.
func BenchmarkLint(b *testing.B) {
	const services, proxies, policies = 2000, 2, 5
	var list []*resources.Resource
	decode := func(format string, args ...any) {
		more, err := resources.DecodeDocuments([]byte(fmt.Sprintf(format, args...)), resources.DecodeOptions{})
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, more...)
	}
	for s := range services {
		namespace := fmt.Sprintf("ns-%d", s%20)
		decode(`{type: MeshService, mesh: default, name: s-%d, labels: {k8s.kuma.io/namespace: %s}, spec: {selector: {dataplaneTags: {app: s-%d}}, ports: [{port: 80, targetPort: 8080, appProtocol: http}]}}`,
			s, namespace, s)
		for p := range proxies {
			decode(`{type: Dataplane, mesh: default, name: d-%d-%d, labels: {app: s-%d, k8s.kuma.io/namespace: %s}, networking: {address: 10.0.0.1, inbound: [{port: 8080, tags: {kuma.io/service: s-%d, app: s-%d}}]}}`,
				s, p, s, namespace, s, s)
		}
		for p := range policies {
			decode(`{type: MeshTrafficPermission, mesh: default, name: p-%d-%d, spec: {targetRef: {kind: Dataplane, labels: {app: s-%d}}, rules: [{default: {
  deny: [{spiffeId: {type: Exact, value: "spiffe://d/ns/a/sa/s-%d"}, method: DELETE}], allow: [{spiffeId: {type: Exact, value: "spiffe://d/ns/a/sa/s-%d"}, method: DELETE}, {spiffeId: {type: Exact, value: "spiffe://d/ns/a/sa/s-%d"}}]}}]}}`,
				s, p, s, (s+p)%services, (s+p)%services, (s+2*p)%services)
		}
	}
	for b.Loop() {
		world := explain.FromFiles(list, explain.Options{}).ForReader(func(*resources.Resource) bool { return true })
		if found, _, err := world.LintShown(b.Context(), "default"); err != nil || len(found) < policies*services {
			b.Fatalf("%d findings, %v", len(found), err)
		}
	}
}
