package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestKubernetesDeletions deletes objects in any order, and while the server is away, with the webhooks of the chart: what
// may have to stay waits for the server, and nothing else does.
func TestKubernetesDeletions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.global()
	z := w.zone(g.join("zone-1")...)
	z.chartWebhooks()
	g.put("of-all", "spiffe://a/b")
	copied := w.copyOf("of-all", "kuma.io/origin=global")
	w.apply(permission("first", "backend-ns", "Exact") + permission("second", "backend-ns", "Exact") + permission("third", "frontend-ns", "Exact"))
	z.has("backend-ns/second")
	z.has("frontend-ns/third")

	// Of a collection, the webhook is asked about each object.
	collection := "/apis/kuma.io/v1alpha1/namespaces/" + systemName + "/meshtrafficpermissions"
	if out, err := w.tryKubectl(t.Context(), admin, "delete", "--raw", collection); err == nil || !strings.Contains(out, "this is a copy") {
		t.Errorf("all copies at once may be deleted: %v\n%s", err, out)
	}

	z.Kill()
	away := func(args ...string) {
		t.Helper()
		if out, err := w.tryKubectl(t.Context(), admin, args...); err == nil || !strings.Contains(out, "failed calling webhook") {
			t.Errorf("nobody judged kubectl %v, and it says %v\n%s", args, err, out)
		}
	}
	away("label", "mtp", "-n", "backend-ns", "second", "mine=yes")
	away("delete", "mtp", "-n", systemName, copied)
	away("delete", "mesh", "default")
	away("delete", "--raw", collection)
	out, err := w.tryKubectl(t.Context(), alice, "delete", "mtp", "-n", "backend-ns", "first")
	must(t, explained(err, out))
	// A namespace that is deleted loses its objects by the controller of namespaces.
	for _, name := range []string{"frontend-ns/third", systemName + "/" + copied} {
		namespace, name, _ := strings.Cut(name, "/")
		w.kubectl("delete", "mtp", "-n", namespace, name, "--as", "system:serviceaccount:kube-system:namespace-controller", "--as-group", masters)
	}
	z.start()
	z.lacks("backend-ns/first")
	z.lacks("frontend-ns/third")
	z.has("backend-ns/second")
	if again := w.copyOf("of-all", "kuma.io/origin=global"); again != copied {
		t.Errorf("the copy is %s, and was %s", again, copied)
	}
}

// TestKubernetesPrune deletes a folder of objects: a Mesh that is still used stays, with what uses it, until the next attempt.
func TestKubernetesPrune(t *testing.T) {
	w := newWorld(t)
	z := w.zone()
	z.chartWebhooks()
	dir := t.TempDir()
	mesh := `{"apiVersion": "kuma.io/v1alpha1", "kind": "Mesh", "metadata": {"name": "shop"}}`
	in := strings.NewReplacer(`"namespace"`, `"labels": {"kuma.io/mesh": "shop"}, "namespace"`)
	for name, text := range map[string]string{"1-mesh.json": mesh, "2-policies.json": in.Replace(permission("a", "backend-ns", "Exact") + permission("b", "frontend-ns", "Exact"))} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for range 2 {
		w.eventually("the folder to be applied", func(ctx context.Context) error {
			out, err := w.tryKubectl(ctx, alice, "apply", "-f", dir)
			return explained(err, out)
		})
		z.has("backend-ns/a")
		z.has("frontend-ns/b")
		out, err := w.tryKubectl(t.Context(), alice, "delete", "-f", dir)
		if err == nil || !strings.Contains(out, "backend-ns/a") {
			t.Errorf("the mesh is deleted before what uses it: %v\n%s", err, out)
		}
		z.holds()
		out, err = w.tryKubectl(t.Context(), alice, "delete", "-f", dir, "--ignore-not-found")
		must(t, explained(err, out))
		w.eventually("the mesh to be gone", func(ctx context.Context) error {
			if _, text, err := z.call(ctx, "GET", "/meshes/shop", ""); !strings.Contains(text, "404") {
				return fmt.Errorf("it is there: %s (%w)", text, err)
			}
			return nil
		})
	}
}

// explained adds the output of a command to its error.
func explained(err error, out string) error {
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return err
}

// chartWebhooks tells the API server of the zone's webhook as the chart does, and waits until it asks.
func (z *zone) chartWebhooks() {
	z.w.t.Helper()
	manifests, err := run(z.w.t.Context(), "", filepath.Join(shared.bin, "causewayctl"), "install", "zone", "--name", "z", "--namespace",
		systemName, "--set", "zone=zone-1", "--set", "kubernetes.enabled=true")
	must(z.w.t, explained(err, manifests))
	found := 0
	for _, document := range strings.Split(manifests, "\n---\n") {
		var o struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Metadata   struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Webhooks []map[string]any `json:"webhooks"`
		}
		must(z.w.t, yaml.Unmarshal([]byte(document), &o))
		if !strings.HasSuffix(o.Kind, "WebhookConfiguration") {
			continue
		}
		found++
		o.Metadata.Name = "causeway-zone"
		for _, hook := range o.Webhooks {
			path := hook["clientConfig"].(map[string]any)["service"].(map[string]any)["path"]
			hook["clientConfig"] = map[string]any{"url": fmt.Sprintf("https://127.0.0.1:%d%s", z.w.hookPort, path)}
		}
		raw, err := json.Marshal(o)
		must(z.w.t, err)
		z.w.apply(string(raw))
	}
	if found != 2 {
		z.w.t.Fatalf("the chart has %d configurations of webhooks", found)
	}
	z.asked()
}
