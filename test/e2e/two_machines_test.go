package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// mostCommands is how many commands a mesh on two machines may take.
const mostCommands = 5

// TestTwoMachines runs the commands by which the README makes a mesh of two machines, as it has them: only addresses, folders and the join
// string are others, and the two machines are two sets of ports.
func TestTwoMachines(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := readCommands(t, string(text), "## Two machines")
	if len(commands) < 3 || len(commands) > mostCommands {
		t.Fatalf("the README needs %d commands, want 3 to %d", len(commands), mostCommands)
	}
	first, second := newReader(t, root, "first-policy"), newReader(t, root, "first-policy")
	join := ""
	for _, c := range commands {
		machine := first
		if strings.HasPrefix(c.command, "causeway-zone ") {
			machine = second
		}
		c.command = strings.NewReplacer("/var/lib/", machine.dir+"/", "causeway-join:v1:...", join).Replace(c.command)
		if !strings.Contains(c.command, "zone create") {
			machine.follow(c)
			continue
		}
		out, err := machine.run(t.Context(), c.command)
		machine.must(err)
		if join = strings.TrimSpace(out); len(c.output) != 1 || !strings.HasPrefix(join, strings.TrimSuffix(c.output[0], "...")) {
			t.Fatalf("$ %s\n%s\nwant %q", c.command, out, c.output)
		}
	}
}
