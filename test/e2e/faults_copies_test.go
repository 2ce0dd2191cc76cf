package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestFaultsCopies moves a zone from a global to another that runs on an earlier copy of its data folder, and back. The
// removal of what the copy lacks is held and reported: the zone loses nothing. Back with the original global, the zone
// has what that has.
func TestFaultsCopies(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	link, err := cluster.NewLink(t.Context(), m.global.Address("kds"))
	m.must(err)
	t.Cleanup(func() { _ = link.Close() })
	zone, err := m.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Global: m.global, Link: link})
	m.must(err)
	m.apply(m.global, timeout("early", "10s"))
	m.arrives(zone, "early")
	m.must(m.global.Stop(t.Context()))
	out, err := exec.CommandContext(t.Context(), "cp", "-a", m.global.DataDir,
		filepath.Join(m.Dir(), "copy")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	m.must(m.global.Start(t.Context()))
	if strings.Contains(m.global.Log(), "is a copy") {
		t.Error("a global takes its own data folder for a copy")
	}
	m.apply(m.global, timeout("late", "10s"))
	m.arrives(zone, "late")

	replica, err := m.StartGlobal(t.Context(), cluster.GlobalConfig{Name: "copy"})
	m.must(err)
	if !strings.Contains(replica.Log(), "is a copy") {
		t.Error("the copy does not say that it is one")
	}
	link.Lead(replica.Address("kds"))
	m.apply(replica, timeout("of-the-copy", "10s"))
	m.arrives(zone, "of-the-copy")
	m.holds(replica, zone, "early", "late", "of-the-copy")
	link.Lead(m.global.Address("kds"))
	m.apply(m.global, timeout("after", "10s"))
	m.arrives(zone, "after")
	m.eventually("the zone to have what its global says",
		func(ctx context.Context) error { return sameTimeouts(ctx, m.global, zone) })
	m.noProblems(m.global.API.URL())
}

// holds checks that a zone has the policies, and that doctor on its global reports that the zone holds removals.
func (m *mesh) holds(global, zone *cluster.Server, names ...string) {
	m.t.Helper()
	m.eventually("doctor to say on "+global.Name()+" what is held", func(ctx context.Context) error {
		found, err := m.doctor(ctx, global.API.URL())
		if err == nil && !strings.Contains(fmt.Sprint(found), "held") && !strings.Contains(fmt.Sprint(found), "hold") {
			err = fmt.Errorf("it found %+v", found)
		}
		return err
	})
	all, err := timeouts(m.t.Context(), zone)
	m.must(err)
	for _, name := range names {
		if _, ok := all[name]; !ok {
			m.t.Errorf("the zone lost %s", name)
		}
	}
}
