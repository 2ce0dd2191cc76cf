package zone_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/causeway-mesh/causeway/zone"
)

// TestWatchesOfAProxy: a proxy watches its token by two instances of inotify. All proxies of a node have one user, for whom
// the kernel's own limit is 128, so that docs/install/kubernetes.md asks for more from 60 proxies on.
func TestWatchesOfAProxy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(token, []byte("e30.e30.c2ln"), 0o600))
	for want, cfg := range map[int]zone.BootstrapConfig{0: {Dataplane: "without"}, 2: {Dataplane: "with", RenewedTokenFile: token}} {
		e := w.startEnvoy(cfg)
		soon(t, func() error { // it opens them while it starts
			files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", e.pid))
			must(t, err)
			got := 0
			for _, file := range files {
				if to, err := os.Readlink(file); err == nil && to == "anon_inode:inotify" {
					got++
				}
			}
			if got != want {
				return fmt.Errorf("%s: %d instances of inotify, want %d", cfg.Dataplane, got, want)
			}
			return nil
		})
	}
}
