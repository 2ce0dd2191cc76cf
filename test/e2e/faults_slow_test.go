package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestFaultsLargeOverFourKilobits checks that a large policy reaches a zone over a link of 4 kbit per second, in one
// session. The long form is of 130 kB and takes more than four minutes, far beyond the time in which a silent peer
// counts as gone.
func TestFaultsLargeOverFourKilobits(t *testing.T) {
	t.Parallel()
	size := 40 // 5 kB, 20 s
	if *faultsLong {
		size = 1000
	}
	b := &badLinks{mesh: newMesh(t), links: map[string]*cluster.Link{}}
	b.linkedZone("slow")
	b.good = b.zones["slow"]
	b.links["slow"].Set(badWeathers["slow"])
	begun := time.Now()
	b.must(b.put("large", size))
	b.must(cluster.Until(t.Context(), 10*time.Minute, "the large policy in the zone", func(ctx context.Context) error {
		all, err := byDisplayName(ctx, b.good, "/meshes/default/meshtrafficpermissions")
		if _, there := all["large"]; err == nil && !there {
			err = errNotYet
		}
		return err
	}))
	t.Logf("there after %s", time.Since(begun).Round(time.Second))
	if n := strings.Count(b.good.Log(), "connected to the global"); n != 1 {
		t.Errorf("the zone had %d sessions", n)
	}
}

// TestFaultsStoppedZone checks that the global reports a zone whose process is stopped as offline within 50 s.
func TestFaultsStoppedZone(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1")
	m.zones["zone-1"].Process.Pause()
	defer m.zones["zone-1"].Process.Resume()
	begun := time.Now()
	m.names(m.global.API.URL(), "zone", "zone-1", "offline since")
	t.Logf("offline after %s", time.Since(begun).Round(time.Second))
}
