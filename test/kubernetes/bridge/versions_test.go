package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestKubernetesDefinitionsOfOtherVersions replaces a definition by that of an older version, which lacks a field, and of a
// newer one, which has one more: what is enforced stays, nothing is deleted, and doctor says so.
func TestKubernetesDefinitionsOfOtherVersions(t *testing.T) {
	w := newWorld(t)
	z := w.zone()
	timeout := func(name, conf string) string {
		return fmt.Sprintf(`{"apiVersion": "kuma.io/v1alpha1", "kind": "MeshTimeout", "metadata": {"name": %q, "namespace": "backend-ns"},
 "spec": {"rules": [{"default": {%s}}]}}`, name, conf)
	}
	const all = `"connectionTimeout": "5s", "http": {"requestTimeout": "7s"}`
	z.measures(`causeway_kubernetes_followed{type="MeshTimeout"} 1`)
	w.apply(timeout("before", all))
	z.hasTimeouts("before 5s 7s")
	if out, _ := run(t.Context(), "", filepath.Join(shared.bin, "causewayctl"), "--address", z.url, "doctor", "--diagnostics", z.diagnostics); strings.Contains(out, "another version") {
		t.Fatalf("of the same version, doctor says\n%s", out)
	}

	// An older definition knows no connectionTimeout. The server does, and keeps to it: before and after a restart, and in
	// what is written now.
	w.redefine("older", func(conf map[string]any) { delete(conf, "connectionTimeout") })
	z.Kill()
	z.start()
	z.measures(`causeway_kubernetes_definition_differs{type="MeshTimeout"} 1`)
	z.measures(`causeway_kubernetes_followed{type="MeshTimeout"} 1`)
	z.hasTimeouts("before 5s 7s")
	w.apply(timeout("older", all))
	z.hasTimeouts("before 5s 7s", "older 5s 7s")
	w.condition("mt", "backend-ns", "older", "Accepted", "True")
	z.saysOtherVersion()

	// A newer definition knows a field that the server does not know: it says so, and the last valid generation stays.
	w.redefine("newer", func(conf map[string]any) {
		conf["connectionTimeout"], conf["patience"] = map[string]any{"type": "string"}, map[string]any{"type": "string"}
	})
	z.Kill()
	z.start()
	z.measures(`causeway_kubernetes_definition_differs{type="MeshTimeout"} 1`)
	w.apply(timeout("before", all+`, "patience": "1s"`) + timeout("newer", all))
	if got := w.condition("mt", "backend-ns", "before", "Accepted", "False"); !strings.Contains(got, "patience: unknown field") || !strings.Contains(got, "stays in force") {
		t.Errorf("Accepted says %q", got)
	}
	z.hasTimeouts("before 5s 7s", "newer 5s 7s", "older 5s 7s")
	z.saysOtherVersion()

	w.kubectl("apply", "--server-side", "--force-conflicts", "-f", definitionOf("meshtimeouts"))
	z.Kill()
	z.start()
	z.hasTimeouts("before 5s 7s", "newer 5s 7s", "older 5s 7s")
	w.condition("mt", "backend-ns", "newer", "Programmed", "True")
}

// hasTimeouts waits until the store has these timeouts, each with its name, and no others.
func (z *zone) hasTimeouts(want ...string) {
	z.w.t.Helper()
	z.w.eventually(fmt.Sprintf("the store to have %v", want), func(ctx context.Context) error {
		all, err := z.timeouts(ctx)
		var got []string
		for name, timeouts := range all {
			got = append(got, name+" "+timeouts)
		}
		slices.Sort(got)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("it has %v", got)
		}
		return err
	})
}

// timeouts are the timeouts of backend-ns in a server, by display name: those of connections, if any, and of requests.
func (z *zone) timeouts(ctx context.Context) (map[string]string, error) {
	status, text, err := z.call(ctx, http.MethodGet, "/meshtimeouts?size=1000", "")
	if err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("%d %s %w", status, text, err)
	}
	type rule struct {
		Default struct {
			ConnectionTimeout string
			HTTP              struct{ RequestTimeout string }
		}
	}
	var list struct {
		Items []struct {
			Name, Namespace string
			Labels          map[string]string
			Spec            struct{ To, Rules []rule }
		}
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, one := range list.Items {
		rules := append(one.Spec.To, one.Spec.Rules...)
		if one.Labels["k8s.kuma.io/namespace"] != "backend-ns" || len(rules) == 0 {
			continue
		}
		name := one.Labels["kuma.io/display-name"]
		if out[name] != "" {
			return nil, fmt.Errorf("%s is there twice", name)
		}
		conf := &rules[0].Default
		out[name] = strings.TrimSpace(conf.ConnectionTimeout + " " + conf.HTTP.RequestTimeout)
	}
	return out, nil
}

func definitionOf(plural string) string {
	return filepath.Join(shared.root, "deploy", "crds", "kuma.io_"+plural+".yaml")
}

// saysOtherVersion checks what doctor says of the definition.
func (z *zone) saysOtherVersion() {
	z.w.t.Helper()
	out, _ := run(z.w.t.Context(), "", filepath.Join(shared.bin, "causewayctl"), "--address", z.url, "doctor", "--diagnostics", z.diagnostics)
	if !strings.Contains(out, "the CustomResourceDefinitions are of another version than the server") || !strings.Contains(out, "causewayctl install crds") {
		z.w.t.Errorf("doctor says\n%s", out)
	}
}

// redefine replaces the definition of MeshTimeouts by one of another version, whose confs have other fields.
func (w *world) redefine(version string, change func(conf map[string]any)) {
	w.t.Helper()
	raw, err := os.ReadFile(definitionOf("meshtimeouts"))
	must(w.t, err)
	var definition map[string]any
	must(w.t, yaml.Unmarshal(raw, &definition))
	in := func(o map[string]any, path ...string) map[string]any {
		for _, name := range path {
			next, ok := o[name].(map[string]any)
			if !ok {
				w.t.Fatalf("the definition has no %s of %v", name, path)
			}
			o = next
		}
		return o
	}
	in(definition, "metadata", "annotations")["causeway.io/schema"] = version
	schema := in(definition["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties")
	for _, list := range []string{"rules", "to", "from"} {
		conf := in(schema, list, "items", "properties", "default", "properties")
		if len(conf) < 2 {
			w.t.Fatalf("the conf of %s has only %v", list, conf)
		}
		change(conf)
	}
	raw, err = yaml.Marshal(definition)
	must(w.t, err)
	out, err := w.feedKubectl(w.t.Context(), admin, string(raw), "apply", "--server-side", "--force-conflicts", "-f", "-")
	if err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
}
