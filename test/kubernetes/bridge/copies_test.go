package bridge

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestKubernetesCopies joins the zone to a global: what the global's users write is shown in the system namespace, and
// nobody changes it there.
func TestKubernetesCopies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.global()
	z := w.zone(g.join("zone-1")...)
	z.webhooks("Fail")
	shown := func(what string) (name string) {
		t.Helper()
		w.eventually("the copy to be shown with "+what, func(ctx context.Context) error {
			out, err := w.tryKubectl(ctx, admin, "get", "mtp", "-n", systemName, "-l", "kuma.io/display-name=of-all,kuma.io/origin=global,causeway.io/copy=true",
				"-o", "jsonpath={range .items[*]}{.metadata.name} {.spec}{end}")
			if err != nil || !strings.Contains(out, what) {
				return fmt.Errorf("%w: %s", err, out)
			}
			name, _, _ = strings.Cut(out, " ")
			return nil
		})
		return name
	}
	g.put("of-all", "spiffe://a/b")
	name := shown("spiffe://a/b")
	if !strings.HasPrefix(name, "of-all-") {
		t.Errorf("its name is %q", name)
	}
	g.put("of-all", "spiffe://a/c")
	shown("spiffe://a/c")
	for _, args := range [][]string{{"delete", "mtp", "-n", systemName, name}, {"label", "mtp", "-n", systemName, name, "mine=yes"},
		{"patch", "mtp", "-n", systemName, name, "--type=merge", "-p", `{"spec":{"default":{"deny":[]}}}`},
		{"delete", "mesh", "default"}} {
		out, err := w.tryKubectl(t.Context(), alice, args...)
		if err == nil || !strings.Contains(out, "lives on the global") {
			t.Errorf("%v: %v %s", args, err, out)
		}
	}
	forged := strings.Replace(permission("forged", "backend-ns", "Exact"), `"namespace"`, `"labels": {"causeway.io/copy": "true"}, "namespace"`, 1)
	if out := w.refused(forged); !strings.Contains(out, "is set by the server") {
		t.Errorf("a forged copy: %s", out)
	}
	if status, text, err := g.call(t.Context(), http.MethodDelete, "/meshes/default/meshtrafficpermissions/of-all", ""); err != nil || status != http.StatusOK {
		t.Fatalf("%d %v: %s", status, err, text)
	}
	w.eventually("the copy to be gone", func(ctx context.Context) error {
		if out, err := w.tryKubectl(ctx, admin, "get", "mtp", "-n", systemName, name); err == nil {
			return fmt.Errorf("%s", out)
		}
		return nil
	})

	// What the zone's users write goes to the global, and its conditions say so.
	w.apply(permission("up", "backend-ns", "Exact"))
	if got := w.condition("mtp", "backend-ns", "up", "Programmed", "True"); !strings.Contains(got, "acknowledged by 1 of 1") {
		t.Errorf("Programmed says %q", got)
	}
	g.Kill()
	w.apply(permission("up", "backend-ns", "Prefix"))
	w.condition("mtp", "backend-ns", "up", "Programmed", "Unknown")
}
