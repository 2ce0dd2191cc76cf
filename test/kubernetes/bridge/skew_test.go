package bridge

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestKubernetesClocksDiffer runs a zone whose clock is not the API server's: what users write and delete arrives, the
// webhook is trusted, and what is gone without a user is held.
func TestKubernetesClocksDiffer(t *testing.T) {
	build(t) // the command line is of the usual build
	bin := t.TempDir()
	must(t, cluster.BuildWithClocks(t.Context(), bin))
	for name, skew := range map[string]time.Duration{"behind": -50 * time.Minute, "ahead": 50 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOf(t, bin)
			clock, err := cluster.NewClock(filepath.Join(w.dir, "clock"))
			must(t, err)
			defer clock.Close()
			must(t, clock.Set(skew))
			t.Setenv(cluster.ClockVariable, filepath.Join(w.dir, "clock"))
			g := w.global()
			z := w.zone(g.join("zone-1")...)
			z.webhooks("Fail")
			w.apply(permission("kept", "backend-ns", "Exact") + permission("gone", "backend-ns", "Exact"))
			w.condition("mtp", "backend-ns", "kept", "Programmed", "True")
			w.kubectl("delete", "mtp", "-n", "backend-ns", "gone")
			z.holds("backend-ns/kept")

			// What happens while the zone is away, and after its clock jumped to the other side.
			z.Kill()
			w.kubectl("delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "causeway-zone")
			w.apply(permission("new", "backend-ns", "Exact"))
			must(t, clock.Set(-skew))
			z.start()
			z.holds("backend-ns/kept", "backend-ns/new")
			w.condition("mtp", "backend-ns", "new", "Programmed", "True")
			z.Kill()
			w.kubectl("delete", "mtp", "-n", "backend-ns", "new")
			z.start()
			z.holds("backend-ns/kept")

			// A definition that was made again is younger than what it took away, whatever our clock says.
			z.Kill()
			w.kubectl("delete", "crd", "meshtrafficpermissions.kuma.io")
			w.kubectl("apply", "--server-side", "-f", filepath.Join(shared.root, "deploy", "crds", "kuma.io_meshtrafficpermissions.yaml"))
			w.kubectl("wait", "--for=condition=Established", "crd", "meshtrafficpermissions.kuma.io", "--timeout=60s")
			z.start()
			z.measures(`causeway_kubernetes_held_deletions{type="MeshTrafficPermission"} 1`)
			z.holds("backend-ns/kept")
			if out := z.doctor(); !strings.Contains(out, "deletions held: 1") {
				t.Errorf("doctor says\n%s", out)
			}
		})
	}
}
