package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// withHosts makes a server use its own hosts file from its next start on. It returns false if this machine does not
// allow that.
func (m *mesh) withHosts(s *cluster.Server, hosts string) bool {
	m.t.Helper()
	if out, err := exec.CommandContext(m.t.Context(), "unshare", "--mount", "mount", "--bind", hosts,
		"/etc/hosts").CombinedOutput(); err != nil {
		m.t.Logf("%v: %s", err, out)
		return false
	}
	bin := m.t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nexec unshare --mount sh -c 'mount --bind %s /etc/hosts && exec %s \"$@\"' sh \"$@\"\n",
		hosts, filepath.Join(programs.bin(), "causeway-zone"))
	m.must(os.WriteFile(filepath.Join(bin, "causeway-zone"), []byte(script), 0o700)) //nolint:gosec // a program
	s.SetPrograms(bin)
	return true
}

// hostsKept exceeds the time for which Go's resolver caches that file.
const hostsKept = 6 * time.Second

// TestFaultsNameOfTheGlobal changes the address of the name by which a zone knows its global: while the zone has a
// session, while it has none, and while the old address accepts connections and stays silent. The zone follows by
// itself.
func TestFaultsNameOfTheGlobal(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1")
	zone := m.zones["zone-1"]
	_, port, err := net.SplitHostPort(m.global.Address("kds"))
	m.must(err)
	hosts := filepath.Join(t.TempDir(), "hosts")
	lead := func(address string) { // in place: the file stays the one that is mounted
		m.must(os.WriteFile(hosts, []byte(address+" localhost\n"), 0o600))
	}
	lead("127.0.0.1")
	m.must(zone.Stop(t.Context()))
	if !m.withHosts(zone, hosts) {
		t.Log("this machine lets nobody mount a file: no name can be given another address for one process")
		return
	}
	zone.SetArgs("--zone", "zone-1", "--global", "grpcs://localhost:"+port)
	m.must(zone.Start(t.Context()))
	m.must(connected(t.Context(), zone))

	mute, err := net.Listen("tcp", "127.0.0.3:"+port) // accepts connections that nobody serves
	m.must(err)
	t.Cleanup(func() { _ = mute.Close() })
	refusals := []struct{ what, old string }{{"refuses", "127.0.0.2"}, {"says nothing", "127.0.0.3"}}
	if !*faultsLong {
		refusals = refusals[:1]
	}
	for i, r := range refusals {
		// The session continues while the name leads elsewhere, and returns when the name does.
		lead(r.old)
		name := fmt.Sprint("with-a-session-", i)
		m.apply(m.global, timeout(name, "10s"))
		m.arrives(zone, name)
		m.global.Kill()
		during(t.Context(), hostsKept)
		m.must(m.global.Start(t.Context()))
		m.names(m.global.API.URL(), "zone", "zone-1", "not seen since")
		name = fmt.Sprint("without-a-session-", i)
		m.apply(m.global, timeout(name, "10s"))
		m.apply(zone, timeout("zones-"+name, "10s"))
		m.names(zone.API.URL(), "sync", "zone-1", "not connected")
		lead("127.0.0.1")
		begun := time.Now()
		m.arrives(zone, name)
		m.arrives(m.global, "zones-"+name)
		t.Logf("the old address %s: all agree %s after the name has the new one", r.what,
			time.Since(begun).Round(time.Millisecond))
		m.noProblems(m.global.API.URL())
		m.noProblems(zone.API.URL())
	}
}
