package bridge

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestKubernetesHealth asks what programs that deploy objects take them for: the library that Flux has, and the script for
// Argo CD of the documentation. An object is done once the mesh has it, not while a server has yet to see it, and has
// failed when it is refused.
func TestKubernetesHealth(t *testing.T) {
	w := newWorld(t)
	w.apply(permission("early", "backend-ns", "Exact"))
	w.healthy("early", "InProgress", "Progressing")

	g := w.global()
	z := w.zone(g.join("zone-1")...)
	w.healthy("early", "Current", "Healthy")

	z.Kill() // nobody sees the change
	w.apply(permission("early", "backend-ns", "Prefix"))
	w.healthy("early", "InProgress", "Progressing")
	z.start()
	w.healthy("early", "Current", "Healthy")

	w.apply(strings.Replace(permission("broken", "backend-ns", "Exact"), `"type"`, `"sort": "x", "type"`, 1))
	w.healthy("broken", "Failed", "Degraded")
	w.apply(permission("broken", "backend-ns", "Exact"))
	w.healthy("broken", "Current", "Healthy")

	w.apply(strings.Replace(permission("waits", "backend-ns", "Exact"), `"namespace"`, `"labels": {"kuma.io/mesh": "later"}, "namespace"`, 1))
	w.condition("mtp", "backend-ns", "waits", "Ready", "False")
	w.healthy("waits", "InProgress", "Progressing")

	g.Kill() // what it has now is unknown
	w.apply(permission("early", "backend-ns", "Exact"))
	w.condition("mtp", "backend-ns", "early", "Ready", "Unknown")
	w.healthy("early", "InProgress", "Progressing")
}

// healthy waits until Flux and Argo CD take a permission for what they should.
func (w *world) healthy(name, flux, argo string) {
	w.t.Helper()
	script := filepath.Join(shared.root, "docs", "kubernetes", "argo-health.lua")
	w.eventually(fmt.Sprintf("%s to be %s and %s", name, flux, argo), func(ctx context.Context) error {
		object, err := w.tryKubectl(ctx, admin, "get", "mtp", "-n", "backend-ns", name, "-o", "json")
		if err != nil {
			return fmt.Errorf("%w: %s", err, object)
		}
		for want, args := range map[string][]string{flux: {"flux"}, argo: {"argo", script}} {
			out, err := run(ctx, object, program("health"), args...)
			if err != nil || !strings.HasPrefix(out, want+": ") {
				return fmt.Errorf("%s says %s, want %s (%w)", args[0], out, want, err)
			}
		}
		return nil
	})
}
