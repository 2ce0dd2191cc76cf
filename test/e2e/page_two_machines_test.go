package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/pages"
)

// mostCommands is the highest number of commands for a mesh on two machines.
const mostCommands = 5

// TestTwoMachines runs the commands of docs/install/README.md for a mesh of two machines unchanged, except for addresses,
// folders and the join string. The two machines are two sets of ports.
func TestTwoMachines(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	const page = "docs/install/README.md"
	commands, err := pages.Read(root, page, "## Two machines")
	if err != nil {
		t.Fatal(err)
	}
	if len(commands) < 3 || len(commands) > mostCommands {
		t.Fatalf("the page needs %d commands, want 3 to %d", len(commands), mostCommands)
	}
	first, second := newReader(t, root, "first-policy"), newReader(t, root, "first-policy")
	join := ""
	for _, c := range commands {
		machine := first
		if strings.HasPrefix(c.Text, "causeway-zone ") {
			machine = second
		}
		c.Text = strings.NewReplacer("/var/lib/", machine.dir+"/", "causeway-join:v1:...", join).Replace(c.Text)
		if !strings.Contains(c.Text, "zone create") {
			machine.follow(c)
			continue
		}
		out, err := machine.run(t.Context(), c.Text)
		machine.must(err)
		if join = strings.TrimSpace(out); len(c.Output) != 1 ||
			!strings.HasPrefix(join, strings.TrimSuffix(c.Output[0], "...")) {
			t.Fatalf("$ %s\n%s\nwant %q", c.Text, out, c.Output)
		}
	}
}

// TestInstallOnTwoMachines runs the commands of docs/install/two-machines.md, each on its machine. It runs the
// installed programs, and carries the join string from one machine to the other as a file.
func TestInstallOnTwoMachines(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	const page = "docs/install/two-machines.md"
	all, err := pages.Read(root, page, "")
	if err != nil {
		t.Fatal(err)
	}
	global, zone := newReader(t, root, "first-policy"), newReader(t, root, "first-policy")
	sections := []struct {
		name    string
		machine *reader
	}{{"## The global", global}, {"## The zone", zone}, {"### On the global's machine", global},
		{"### On the zone's machine", zone}}
	ran := 0
	for _, s := range sections {
		commands, err := pages.Read(root, page, s.name)
		s.machine.must(err)
		place := strings.NewReplacer("/var/lib/", s.machine.dir+"/var/lib/", "/usr/local/bin/",
			s.machine.dir+"/usr/local/bin/", "10.0.0.1", "127.0.0.1")
		s.machine.must(os.MkdirAll(filepath.Join(s.machine.dir, "usr", "local", "bin"), 0o700))
		for _, c := range commands {
			c.Text = place.Replace(c.Text)
			for i := range c.Output {
				c.Output[i] = place.Replace(c.Output[i])
			}
			s.machine.follow(c)
			ran++
		}
		if s.machine == global && s.name == "## The global" { // "Bring zone-1.join to the machine of the zone"
			raw, err := os.ReadFile(filepath.Join(global.dir, "zone-1.join"))
			global.must(err)
			zone.must(os.WriteFile(filepath.Join(zone.dir, "zone-1.join"), raw, 0o600))
		}
	}
	if ran != len(all) || ran < 8 {
		t.Errorf("%d of %d commands were run: is one in another section?", ran, len(all))
	}
}
