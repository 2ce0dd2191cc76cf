package inspect_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// told is what each place that speaks of a policy says of its effect.
func (s *site) told(t *testing.T, typ resources.Type, spec any) map[string]string {
	t.Helper()
	d, _ := resources.Lookup(typ)
	body, err := json.Marshal(map[string]any{"type": typ, "mesh": "default", "name": "honest",
		"labels": map[string]string{"kuma.io/mesh": "default"}, "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	path := "/meshes/default/" + d.Path + "/honest"
	code, answer := s.ask(t, http.MethodPut, path, string(body))
	if code/100 != 2 {
		t.Fatalf("%s: %d %s", typ, code, answer)
	}
	var written struct{ Warnings []string }
	if err := json.Unmarshal(answer, &written); err != nil {
		t.Fatal(err)
	}
	key := resources.Key{Type: typ, Mesh: "default", Name: "honest"}
	selection := matching.NewSelection(s.store.Snapshot().Get(key), resources.DefaultSystemNamespace, s.store.Snapshot().List(store.Query{Type: resources.TypeMeshGateway, Mesh: "default"}))
	_, read := s.ask(t, http.MethodGet, path, "")
	_, lint := s.ask(t, http.MethodGet, "/meshes/default/_lint", "")
	var found struct {
		Findings []struct{ KRI, Message string }
	}
	if err := json.Unmarshal(lint, &found); err != nil {
		t.Fatal(err)
	}
	var findings []string
	for _, f := range found.Findings {
		if strings.HasSuffix(f.KRI, "_honest_") {
			findings = append(findings, f.Message)
		}
	}
	s.ask(t, http.MethodDelete, path, "")
	return map[string]string{
		"apply": fmt.Sprint(written.Warnings), "rollout status": fmt.Sprint(selection.NotEnforced()),
		"conditions": string(read), "lint": fmt.Sprint(findings),
	}
}

// TestNoPolicyIsSilentlyWithoutEffect writes a policy of each type with each of its lists. Where resources.Unenforced,
// which a test in zone/xds holds against what proxies are sent, says that a part has no effect, apply, conditions, lint
// and rollout status say so too, and nowhere else.
func TestNoPolicyIsSilentlyWithoutEffect(t *testing.T) {
	raw, err := os.ReadFile("../xds/testdata/enforced/confs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	confs := map[resources.Type]map[string]any{}
	if err := yaml.Unmarshal(raw, &confs); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, "")
	for _, d := range resources.Descriptors() {
		for list, conf := range confs[d.Type] {
			takes := resources.Enforced(d.Type)
			enforced := map[string]bool{"to": takes.To, "from": takes.From, "rules": takes.Rules, "default": takes.Single}[list]
			for where, text := range s.told(t, d.Type, map[string]any{list: conf}) {
				said := strings.Contains(text, "this version does not configure proxies by")
				if said == enforced {
					t.Errorf("%s.%s is enforced: %v; %s says %s", d.Type, list, enforced, where, text)
				}
			}
		}
	}
}

// TestPoliciesWithoutAnEffectSayWhy writes policies whose types take effect, and that have none where they are.
func TestPoliciesWithoutAnEffectSayWhy(t *testing.T) {
	s := newSite(t, "")
	for _, tt := range []struct {
		typ    resources.Type
		spec   string
		want   string
		places []string
	}{
		{resources.TypeMeshTimeout,
			`{targetRef: {kind: Dataplane, labels: {app: nobody}}, default: {http: {requestTimeout: 1s}}}`,
			"selects no", []string{"apply", "conditions", "lint"}},
		{resources.TypeMeshCircuitBreaker,
			`{from: [{targetRef: {kind: MeshSubset, tags: {a: b}}, default: {connectionLimits: {maxConnections: 1}}}]}`,
			"carry no tags", []string{"apply", "conditions"}},
		{resources.TypeMeshRateLimit, `{targetRef: {kind: Dataplane, sectionName: admin}, default: {local: {http: {requestRate: {num: 1, interval: 1s}}}}}`,
			"takes connections only", []string{"apply", "conditions", "lint"}},
		{resources.TypeMeshTimeout, `{rules: [{matches: [{path: {type: Exact, value: /a}}], default: {idleTimeout: 1s, http: {requestTimeout: 1s}}}]}`,
			"spec.rules[0].default.idleTimeout", []string{"apply", "conditions", "lint", "rollout status"}},
		{resources.TypeMeshTrace, `{default: {backends: [{type: Datadog, datadog: {url: "http://127.0.0.1:8126", splitService: true}}]}}`,
			"spec.default.backends[0].datadog.splitService", []string{"apply", "conditions", "lint", "rollout status"}},
		{resources.TypeMeshRateLimit, `{rules: [{matches: [{path: {type: Exact, value: /a}}], default: {local: {tcp: {connectionRate: {num: 1, interval: 1s}}}}}]}`,
			"spec.rules[0].default.local.tcp: limits connections", []string{"apply", "conditions", "lint", "rollout status"}},
	} {
		var spec any
		if err := yaml.Unmarshal([]byte(tt.spec), &spec); err != nil {
			t.Fatal(err)
		}
		told := s.told(t, tt.typ, spec)
		for _, where := range tt.places {
			if !strings.Contains(told[where], tt.want) {
				t.Errorf("%s %s: %s does not say %q: %s", tt.typ, tt.spec, where, tt.want, told[where])
			}
		}
	}
}

// TestALargeMeshCostsAWriteLittle: by labels a policy's Dataplanes are found, however many there are. Without, so many
// are looked at, and nothing is said of the others.
func TestALargeMeshCostsAWriteLittle(t *testing.T) {
	s := newSite(t, "")
	home := resources.Home{Zone: "zone-1", SystemNamespace: resources.DefaultSystemNamespace}
	spec, err := resources.NewSpec(resources.TypeDataplane,
		[]byte(`{"networking": {"address": "10.0.0.1", "inbound": [{"port": 80}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	var batch store.Batch
	for i := range 1100 {
		dp := &resources.Resource{Key: resources.Key{Type: resources.TypeDataplane, Mesh: "default",
			Name: fmt.Sprintf("dp-%d", i)}, Spec: spec}
		batch.Ops = append(batch.Ops, store.Op{Put: home.Labelled(dp)})
	}
	if _, err := s.store.Apply(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]bool{`{kind: Dataplane, labels: {app: nobody}}`: true,
		`{kind: Dataplane, name: nobody}`: false} {
		var spec any
		if err := yaml.Unmarshal([]byte(`{targetRef: `+target+`, default: {http: {requestTimeout: 1s}}}`),
			&spec); err != nil {
			t.Fatal(err)
		}
		if told := s.told(t, resources.TypeMeshTimeout, spec)["apply"]; strings.Contains(told, "selects no") != want {
			t.Errorf("%s: apply says %s", target, told)
		}
	}
}
