package deploy

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/pages"
)

// variables makes a server listen on the machine's ports, with the file of variables that its unit reads.
func (m *machine) variables(server string, names map[string]string) {
	m.t.Helper()
	var lines strings.Builder
	for name, port := range names {
		fmt.Fprintf(&lines, "%s=127.0.0.1:%s\n", name, m.ports.Replace(port))
	}
	m.write("etc/causeway/"+server+".env", lines.String())
}

func (m *machine) globalVariables() {
	m.t.Helper()
	m.variables("global", map[string]string{"CAUSEWAY_API_ADDRESS": "5681", "CAUSEWAY_KDS_ADDRESS": "5685",
		"CAUSEWAY_DIAGNOSTICS_ADDRESS": "5680"})
}

func (m *machine) zoneVariables() {
	m.t.Helper()
	m.variables("zone", map[string]string{"CAUSEWAY_API_ADDRESS": "5681", "CAUSEWAY_XDS_ADDRESS": "5678",
		"CAUSEWAY_DIAGNOSTICS_ADDRESS": "5680"})
}

// systemctl emulates the systemctl commands of a page.
func (m *machine) systemctl(args []string) {
	m.t.Helper()
	switch {
	case len(args) == 3 && args[0] == "enable" && args[1] == "--now":
		if program, err := exec.LookPath("systemctl"); err == nil {
			output(m.t, program, "--root="+m.root, "enable", args[2])
			if _, err := os.Lstat(m.path("etc/systemd/system/multi-user.target.wants/" + args[2] + ".service")); err != nil {
				m.t.Error(err)
			}
		}
		m.start(args[2])
	case len(args) == 2 && args[0] == "status":
		s := m.services[args[1]]
		if s == nil {
			m.t.Fatalf("%s does not run", args[1])
		}
		s.until("STATUS=ready")
	case len(args) == 2 && args[0] == "stop":
		m.stop(args[1])
	case len(args) == 2 && args[0] == "start":
		m.start(args[1])
	default:
		m.t.Fatalf("nobody knows here what systemctl %q does", args)
	}
}

// TestInstallWithSystemd runs all commands of docs/install/systemd.md, on two machines, and starts what they install as
// systemd would.
func TestInstallWithSystemd(t *testing.T) {
	const page = "docs/install/systemd.md"
	all, err := pages.Read(root, page, "")
	must(t, err)
	global, zone := newMachine(t), newMachine(t)
	global.globalVariables()
	zone.zoneVariables()
	ran := 0
	follow := func(m *machine, section string) {
		t.Helper()
		commands, err := pages.Read(root, page, section)
		must(t, err)
		for _, c := range commands {
			ran++
			if args, ok := strings.CutPrefix(c.Text, "systemctl "); ok {
				m.systemctl(strings.Fields(args))
				continue
			}
			m.follow(c, m.shell)
		}
	}
	follow(global, "## The global")
	bring(t, global, zone, "zone-1.join")
	follow(zone, "## A zone")
	follow(global, "### On the global's machine")
	follow(zone, "### On the zone's machine")
	global.onlyIts("causeway-global")
	zone.onlyIts("causeway-zone")
	follow(global, "## Back up and restore")
	if ran != len(all) {
		t.Errorf("%d of %d commands were run: is one in another section?", ran, len(all))
	}

	// The join string may then be removed, as the page says, and enabled units start again with the machine.
	must(t, os.Remove(zone.path("etc/credstore/causeway-zone.join")))
	zone.stop("causeway-zone")
	zone.start("causeway-zone")
	check := pages.Command{Text: "causewayctl doctor", Output: []string{"ok sync zone-1 connected, in sync"}}
	zone.follow(check, zone.shell)
	global.stop("causeway-global")
}

// bring copies a file from one machine to another.
func bring(t *testing.T, from, to *machine, name string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(from.dir, name))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(to.dir, name), raw, 0o600))
}

// onlyIts checks that a server has written only in its own folder.
func (m *machine) onlyIts(name string) {
	m.t.Helper()
	if os.Geteuid() != 0 {
		return // all files belong to the same user
	}
	own := 0
	must(m.t, filepath.WalkDir(m.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil || owner(info) < dynamicUser {
			return err
		}
		inside, err := filepath.Rel(m.root, path)
		switch {
		case strings.HasPrefix(inside, "var/lib/private/"+name):
			own++
		case !strings.HasPrefix(inside, "run/"):
			m.t.Errorf("%s wrote %s", name, inside)
		}
		return err
	}))
	if own < 5 {
		m.t.Errorf("%s wrote only %d files", name, own)
	}
}
