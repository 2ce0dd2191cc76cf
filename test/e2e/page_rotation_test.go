package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/pages"
)

// TestServerCAGuide runs the commands of docs/operations/rotation.md that replace a global's CA: the zone is locked out
// until it has joined again, loses nothing, and receives changes afterwards.
func TestServerCAGuide(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1")
	zone := m.zones["zone-1"]
	m.apply(m.global, timeout("before", "10s"))
	m.arrives(zone, "before")
	before, lockedOut := m.fingerprint(), false
	root, err := cluster.Root()
	m.must(err)
	commands, err := pages.Read(root, "docs/operations/rotation.md", "## A server's own CA")
	m.must(err)
	if len(commands) != 7 {
		t.Fatalf("the section has %d commands", len(commands))
	}
	servers := map[string]*cluster.Server{"causeway-global": m.global, "causeway-zone": zone}
	dir := t.TempDir()
	place := strings.NewReplacer("/var/lib/causeway-global", m.global.DataDir, "/var/lib/causeway-zone", zone.DataDir,
		"10.0.0.1:5685", m.global.Address("kds"))
	for _, c := range commands {
		words := strings.Fields(c.Text)
		switch {
		case words[0] != "systemctl":
			out, err := m.inShell(dir, place.Replace(c.Text))
			m.must(err)
			m.must(pages.Shows(c.Output, out, place))
		case words[1] == "stop":
			if words[2] == "causeway-zone" {
				m.says(zone, "certificate signed by unknown authority", "the zone to say why it has no session")
				lockedOut = true
			}
			m.must(servers[words[2]].Stop(t.Context()))
		case words[1] == "start":
			if s := servers[words[2]]; s == zone {
				zone.SetArgs() // the join string of its first start is replaced by the one just used
			}
			m.must(servers[words[2]].Start(t.Context()))
		}
	}
	if after := m.fingerprint(); after == before || !lockedOut {
		t.Errorf("the CA was %s and is %s; the zone was locked out: %v", before, after, lockedOut)
	}
	m.apply(m.global, timeout("after", "10s"))
	m.arrives(zone, "after")
	m.arrives(zone, "before")
}

// inShell runs a command of a page in a folder.
func (m *mesh) inShell(dir, command string) (string, error) {
	cmd := exec.CommandContext(m.t.Context(), "bash", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+programs.bin()+":"+os.Getenv("PATH"), "CAUSEWAY_ADDRESS="+m.global.API.URL())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("$ %s\n%w: %s", command, err, out)
	}
	return string(out), nil
}
