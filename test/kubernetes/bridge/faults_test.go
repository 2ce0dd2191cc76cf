package bridge

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestKubernetesRestartCompares changes objects while the zone is away. The zone removes what is gone, and only that.
func TestKubernetesRestartCompares(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	z := w.zone()
	for _, name := range []string{"kept", "changed", "gone"} {
		w.apply(permission(name, "backend-ns", "Exact"))
	}
	z.holds("backend-ns/kept", "backend-ns/changed", "backend-ns/gone")
	z.Kill()
	w.kubectl("delete", "mtp", "-n", "backend-ns", "gone")
	w.apply(permission("changed", "backend-ns", "Prefix"))
	w.apply(permission("new", "frontend-ns", "Exact"))
	z.start()
	z.holds("backend-ns/kept", "backend-ns/changed", "frontend-ns/new")
	w.condition("mtp", "backend-ns", "changed", "Accepted", "True")
}

// TestKubernetesListRefused takes from the zone the right to list one kind, before it starts: what it may not see is not gone.
func TestKubernetesListRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	z := w.zone()
	w.apply(permission("kept", "backend-ns", "Exact") + permission("gone", "backend-ns", "Exact"))
	z.holds("backend-ns/kept", "backend-ns/gone")
	z.Kill()
	w.apply(strings.Replace(rights, `{apiGroups: [kuma.io], resources: ["*"],`, `{apiGroups: [kuma.io], resources: [meshes, meshtimeouts],`, 1))
	w.kubectl("delete", "mtp", "-n", "backend-ns", "gone")
	z.start()
	z.measures(`causeway_kubernetes_followed{type="MeshTimeout"} 1`)
	z.measures(`causeway_kubernetes_followed{type="MeshTrafficPermission"} 0`)
	z.holds("backend-ns/kept", "backend-ns/gone")
	if out := z.doctor(); !strings.Contains(out, "the API server is not followed") {
		t.Errorf("doctor says\n%s", out)
	}
	w.apply(rights)
	z.holds("backend-ns/kept")
}

// TestKubernetesAPIServerAway stops the API server: the zone keeps what it has, also over a restart of its own, and
// catches up.
func TestKubernetesAPIServerAway(t *testing.T) {
	w := newWorld(t)
	z := w.zone()
	w.apply(permission("first", "backend-ns", "Exact"))
	z.holds("backend-ns/first")
	w.api.Kill()
	z.holds("backend-ns/first")
	z.Kill()
	z.start()
	z.holds("backend-ns/first")
	must(t, w.api.Start())
	w.apiServerReady()
	w.apply(permission("second", "backend-ns", "Exact"))
	z.holds("backend-ns/first", "backend-ns/second")
	w.kubectl("delete", "mtp", "-n", "backend-ns", "first")
	z.holds("backend-ns/second")
}

// TestKubernetesCompactionUnderTheWatch pauses the zone until etcd has forgotten what it has not seen.
func TestKubernetesCompactionUnderTheWatch(t *testing.T) {
	w := newWorld(t)
	z := w.zone()
	w.apply(permission("first", "backend-ns", "Exact"))
	z.holds("backend-ns/first")
	z.Pause()
	w.kubectl("delete", "mtp", "-n", "backend-ns", "first")
	w.apply(permission("second", "backend-ns", "Exact"))
	w.api.Kill() // its cache of events ends with it
	must(t, w.compact())
	must(t, w.api.Start())
	w.apiServerReady()
	z.Resume()
	z.holds("backend-ns/second")
}

// doctor is what doctor says of a server.
func (z *zone) doctor() string {
	out, err := run(z.w.t.Context(), "", filepath.Join(shared.bin, "causewayctl"), "--address", z.url, "doctor", "--diagnostics", z.diagnostics)
	if err == nil {
		z.w.t.Error("doctor sees no problem")
	}
	return out
}

// compact makes etcd forget all but the present.
func (w *world) compact() error {
	ctx := w.t.Context()
	base := fmt.Sprintf("http://127.0.0.1:%d/v3/kv/", w.etcdPort)
	status, text, err := post(ctx, base+"range", `{"key": "AA=="}`)
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("%d %s %w", status, text, err)
	}
	_, rest, _ := strings.Cut(text, `"revision":"`)
	revision, _, _ := strings.Cut(rest, `"`)
	status, text, err = post(ctx, base+"compaction", `{"revision": "`+revision+`", "physical": true}`)
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("%d %s %w", status, text, err)
	}
	return nil
}

func post(ctx context.Context, url, body string) (int, string, error) {
	return (&zone{url: url}).call(ctx, http.MethodPost, "", body)
}

// TestKubernetesDefinitionGone deletes a CustomResourceDefinition, and with it all objects: nothing of the mesh goes, until
// an operator says so.
func TestKubernetesDefinitionGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	z := w.zone()
	w.apply(permission("a", "backend-ns", "Exact") + permission("b", "backend-ns", "Exact"))
	z.holds("backend-ns/a", "backend-ns/b")
	w.condition("mtp", "backend-ns", "a", "Accepted", "True")
	w.kubectl("delete", "crd", "meshtrafficpermissions.kuma.io")
	z.measures(`causeway_kubernetes_held_deletions{type="MeshTrafficPermission"} 2`)
	if out := z.doctor(); !strings.Contains(out, "deletions held: 2") || !strings.Contains(out, "accept-deletions") {
		t.Errorf("doctor says\n%s", out)
	}
	z.holds("backend-ns/a", "backend-ns/b")
	z.Kill()
	z.start()
	z.holds("backend-ns/a", "backend-ns/b")
	w.kubectl("apply", "--server-side", "-f", shared.root+"/deploy/crds/kuma.io_meshtrafficpermissions.yaml")
	w.kubectl("wait", "--for=condition=Established", "crd", "meshtrafficpermissions.kuma.io", "--timeout=60s")
	w.eventually("a to be back", func(ctx context.Context) error {
		out, err := w.feedKubectl(ctx, admin, permission("a", "backend-ns", "Exact"), "apply", "-f", "-")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	w.condition("mtp", "backend-ns", "a", "Accepted", "True")
	z.holds("backend-ns/a", "backend-ns/b")
	w.kubectl("annotate", "crd", "meshtrafficpermissions.kuma.io", "causeway.io/accept-deletions=b is not needed")
	z.holds("backend-ns/a")
	w.eventually("the operator's word to be used up", func(ctx context.Context) error {
		out, err := w.tryKubectl(ctx, admin, "get", "crd", "meshtrafficpermissions.kuma.io", "-o", "jsonpath={.metadata.annotations}")
		if err != nil || strings.Contains(out, "accept-deletions") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// TestKubernetesMassDeletion removes most objects while the zone is away: it holds that, too.
func TestKubernetesMassDeletion(t *testing.T) {
	w := newWorld(t)
	z := w.zone()
	var all []string
	manifests := ""
	for i := range 13 {
		name := fmt.Sprintf("p%02d", i)
		all, manifests = append(all, "backend-ns/"+name), manifests+permission(name, "backend-ns", "Exact")
	}
	w.apply(manifests)
	z.holds(all...)
	z.Kill()
	w.kubectl("delete", "mtp", "-n", "backend-ns", "--all")
	z.start()
	z.measures(`causeway_kubernetes_held_deletions{type="MeshTrafficPermission"} 13`)
	z.holds(all...)
	w.kubectl("annotate", "crd", "meshtrafficpermissions.kuma.io", "causeway.io/accept-deletions=yes")
	z.holds()
}

// TestKubernetesWithoutTheWebhook stores objects that are not valid while nobody judges them. They are told of, and the
// rest goes on.
func TestKubernetesWithoutTheWebhook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	z := w.zone()
	w.apply(permission("good", "backend-ns", "Exact"))
	z.holds("backend-ns/good")
	bad := strings.Replace(permission("bad", "backend-ns", "Exact"), `"type"`, `"sort": "x", "type"`, 1)
	homeless := strings.Replace(permission("homeless", "backend-ns", "Exact"), `"namespace"`, `"labels": {"kuma.io/mesh": "later"}, "namespace"`, 1)
	w.apply(bad + homeless + permission("other", "backend-ns", "Exact"))
	z.holds("backend-ns/good", "backend-ns/other")
	if got := w.condition("mtp", "backend-ns", "bad", "Accepted", "False"); !strings.Contains(got, "spiffeId.sort: unknown field") {
		t.Errorf("Accepted says %q", got)
	}
	z.measures(`causeway_kubernetes_refused_objects{type="MeshTrafficPermission"} 2`)
	z.measures(`causeway_kubernetes_followed{type="MeshTrafficPermission"} 1`)
	if got := w.condition("mtp", "backend-ns", "homeless", "Accepted", "False"); !strings.Contains(got, `unknown mesh "later"`) {
		t.Errorf("Accepted says %q", got)
	}
	w.apply(`{"apiVersion": "kuma.io/v1alpha1", "kind": "Mesh", "metadata": {"name": "later"}}`)
	w.condition("mtp", "backend-ns", "homeless", "Accepted", "True")

	// What was valid stays in force.
	w.apply(strings.Replace(permission("good", "backend-ns", "Exact"), `"type"`, `"sort": "x", "type"`, 1))
	if got := w.condition("mtp", "backend-ns", "good", "Accepted", "False"); !strings.Contains(got, "generation 1 of it, the last valid one, stays in force") {
		t.Errorf("Accepted says %q", got)
	}
	z.holds("backend-ns/good", "backend-ns/other", "backend-ns/homeless")
}

// TestKubernetesObjectMadeAgain deletes an object and makes it again at once, with another UID.
func TestKubernetesObjectMadeAgain(t *testing.T) {
	w := newWorld(t)
	z := w.zone()
	for i := range 5 {
		w.apply(permission("again", "backend-ns", "Exact"))
		if i < 4 {
			w.kubectl("delete", "mtp", "-n", "backend-ns", "again")
		}
	}
	z.holds("backend-ns/again")
	w.condition("mtp", "backend-ns", "again", "Programmed", "True")
	w.kubectl("delete", "mtp", "-n", "backend-ns", "again")
	z.holds()
}
