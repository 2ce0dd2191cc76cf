package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
)

// TestKubernetesWrites follows a policy from kubectl to the store and back into its conditions.
func TestKubernetesWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	z := w.zone()
	z.webhooks("Fail")
	w.condition("mesh", "", "default", "Accepted", "True") // the mesh of the first start is the user's from now on

	w.apply(permission("web", "backend-ns", "Exact"))
	if got := w.condition("mtp", "backend-ns", "web", "Programmed", "True"); !strings.Contains(got, "it selects no known proxy of zone zone-1") {
		t.Errorf("Programmed says %q", got)
	}
	if got := w.kubectl("get", "mtp", "-n", "backend-ns", "web", "-o", `jsonpath={.metadata.labels.kuma\.io/policy-role} {.metadata.labels.k8s\.kuma\.io/namespace} {.metadata.labels.kuma\.io/zone}`); got != "workload-owner backend-ns zone-1" {
		t.Errorf("the labels are %q", got)
	}
	z.holds("backend-ns/web")
	w.apply(permission("web", "backend-ns", "Prefix"))
	w.condition("mtp", "backend-ns", "web", "Programmed", "True")
	w.eventually("the change to be in the store", func(ctx context.Context) error {
		if _, text, err := z.call(ctx, http.MethodGet, "/meshes/default/meshtrafficpermissions/web?namespace=backend-ns", ""); !strings.Contains(text, "Prefix") {
			return fmt.Errorf("%w: %s", err, text)
		}
		return nil
	})

	document := `{"type": "MeshTrafficPermission", "mesh": "default", "name": "x", "spec": {"default": {}}}`
	for method, body := range map[string]string{http.MethodPut: document, http.MethodDelete: ""} {
		path := "/meshes/default/meshtrafficpermissions/x"
		if method == http.MethodDelete {
			path = "/meshes/default/meshtrafficpermissions/web?namespace=backend-ns"
		}
		if status, text, err := z.call(t.Context(), method, path, body); err != nil || status != http.StatusMethodNotAllowed || !strings.Contains(text, "kubectl") {
			t.Errorf("%s answers %d %v: %s", method, status, err, text)
		}
	}

	if out, err := w.tryKubectl(t.Context(), alice, "delete", "mesh", "default"); err == nil || !strings.Contains(out, "backend-ns/web") {
		t.Errorf("the mesh is deleted, although it is used: %v %s", err, out)
	}
	w.kubectl("delete", "mtp", "-n", "backend-ns", "web")
	z.holds()
	if out, err := w.feedKubectl(t.Context(), alice, permission("later", "frontend-ns", "Exact"), "apply", "--dry-run=server", "-f", "-"); err != nil ||
		!strings.Contains(out, "role: workload-owner") || !strings.Contains(out, "synced to: nowhere") || !strings.Contains(out, "proxies of zone zone-1: 0") {
		t.Errorf("a dry run says: %v\n%s", err, out)
	}
	z.holds()
}

// TestKubernetesBrokenDocuments sends the documents that the HTTP API refuses through the API server: the same fields and
// reasons come back.
func TestKubernetesBrokenDocuments(t *testing.T) {
	w := newWorld(t)
	z := w.zone()
	z.webhooks("Fail")
	archive, err := txtar.ParseFile(filepath.Join(shared.root, "resources", "testdata", "broken.txtar"))
	must(t, err)
	sent := 0
	for _, f := range archive.Files {
		object := asObject(f)
		if object == nil {
			continue
		}
		status, text, err := z.call(t.Context(), http.MethodPost, "/_batch?dryRun=server", overHTTP(object))
		must(t, err)
		var answer struct {
			InvalidParameters []struct{ Field, Reason string } `json:"invalid_parameters"`
		}
		must(t, json.Unmarshal([]byte(text), &answer))
		if status == http.StatusOK || len(answer.InvalidParameters) == 0 {
			continue // valid in this form
		}
		sent++
		out, err := w.feedKubectl(t.Context(), alice, string(object), "create", "--dry-run=server", "--validate=ignore", "-f", "-")
		if err == nil {
			t.Errorf("%s: kubectl takes it: %s", f.Name, object)
			continue
		}
		for _, p := range answer.InvalidParameters {
			reason, _, _ := strings.Cut(p.Reason, " (line ")
			if !strings.Contains(out, p.Field+": "+reason) {
				t.Errorf("%s: the HTTP API says\n  %s: %s\nand kubectl\n  %s", f.Name, p.Field, reason, out)
			}
		}
	}
	if sent < 100 {
		t.Errorf("only %d documents were sent", sent)
	}
}

// overHTTP is what the HTTP API takes: there, types of no mesh have no namespace.
func overHTTP(object []byte) string {
	if strings.Contains(string(object), `"kind":"HostnameGenerator"`) {
		return strings.Replace(string(object), `,"namespace":"`+systemName+`"`, "", 1)
	}
	return string(object)
}

// asObject returns a broken document as an object that kubectl can send; nil if it is broken as an object already.
func asObject(f txtar.File) []byte {
	if !strings.HasSuffix(f.Name, ".yaml") {
		return nil
	}
	var document map[string]any
	if yaml.Unmarshal(f.Data, &document) != nil {
		return nil
	}
	kind, _ := document["type"].(string)
	d, ok := resources.Lookup(resources.Type(kind))
	name, named := document["name"].(string)
	spec, specified := document["spec"].(map[string]any)
	if !ok || !named || !specified || d.Codec != resources.JSON || !resources.IsName(name) || document["labels"] != nil ||
		document["namespace"] != nil || document["mesh"] != nil && document["mesh"] != "default" || strings.HasPrefix(kind, "Access") ||
		strings.Contains("HTTPRouteGroup TCPRoute TrafficTarget MeshGateway", kind) || len(document) > 4 {
		return nil
	}
	object, err := json.Marshal(map[string]any{"apiVersion": "kuma.io/v1alpha1", "kind": kind, "spec": spec,
		"metadata": map[string]any{"name": name, "namespace": systemName}})
	if err != nil || len(object) > 100<<10 {
		return nil
	}
	return object
}
