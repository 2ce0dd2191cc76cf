package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/cmd/settings"
	"github.com/causeway-mesh/causeway/test/cluster"
)

var commandHeading = regexp.MustCompile(`(?m)^## (causeway\S*.*)$`)

// TestHelpIsNarrow checks that no line of any command's --help is wider than settings.HelpWidth.
func TestHelpIsNarrow(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := cluster.Build(t.Context(), bin); err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, program := range []string{"causeway-global", "causeway-zone", "causewayctl"} {
		page := read(t, filepath.Join(root, folder, program+".md"))
		for _, m := range commandHeading.FindAllStringSubmatch(page, -1) {
			words := strings.Fields(m[1])
			if len(words) > 1 && words[1] == "completion" {
				continue // cobra's text
			}
			commands++
			out, err := exec.CommandContext(t.Context(), filepath.Join(bin, program), append(words[1:], "--help")...).Output() //nolint:gosec // our program
			if err != nil {
				t.Fatalf("%s --help: %v", m[1], err)
			}
			for line := range strings.Lines(string(out)) {
				if n := len(strings.TrimRight(line, "\n")); n > settings.HelpWidth {
					t.Errorf("%s --help: %d columns: %s", m[1], n, line)
				}
			}
		}
	}
	if commands < 80 {
		t.Errorf("only %d commands: does this test still read the reference rightly?", commands)
	}
}
