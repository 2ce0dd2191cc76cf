package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/explain"
)

const permissionsGuide = "../../docs/permissions.md"

// TestPermissionsGuide writes the files of docs/permissions.md, runs its commands beside them, and expects the output
// that the page shows. If UPDATE is set, it rewrites the page; review the diff.
func TestPermissionsGuide(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(permissionsGuide)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files, commands := 0, 0
	var page, block []string
	language := ""
	for _, line := range strings.Split(string(raw), "\n") {
		switch {
		case language == "" && strings.HasPrefix(line, "```"):
			language, block = strings.TrimPrefix(line, "```"), nil
		case line == "```":
			switch language {
			case "yaml":
				writeSnippet(t, dir, block)
				files++
			case "console":
				var n int
				block, n = runSnippet(t, dir, block)
				commands += n
			default:
				t.Errorf("a block of %q: nothing checks it", language)
			}
			page = append(append(page, "```"+language), block...)
			language = ""
			page = append(page, line)
			continue
		case language != "":
			block = append(block, line)
			continue
		}
		if language == "" {
			page = append(page, line)
		}
	}
	if files < 4 || commands < 5 {
		t.Errorf("only %d files and %d commands", files, commands)
	}
	got := strings.Join(page, "\n")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(permissionsGuide, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if got != string(raw) {
		t.Errorf("commands print something else than the page shows; UPDATE=1 writes it anew. Now:\n%s", got)
	}
	for _, c := range explain.Checks() {
		if !strings.Contains(string(raw), fmt.Sprintf("| `%s` | %s |", c.Name, c.Text)) {
			t.Errorf("the table of checks lacks %s: %s", c.Name, c.Text)
		}
	}
	for _, path := range explain.Lookalikes("/admin") {
		if !strings.Contains(string(raw), "| `"+path+"` |") {
			t.Errorf("the table of spellings lacks %s", path)
		}
	}
}

// writeSnippet writes a block to the file that its first line names. Resources in the block must be valid.
func writeSnippet(t *testing.T, dir string, block []string) {
	t.Helper()
	name, ok := strings.CutPrefix(block[0], "# file: ")
	if !ok {
		t.Fatalf("want `# file: NAME` in the first line, got %q", block[0])
	}
	text := []byte(strings.Join(block, "\n") + "\n")
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(name, "tests/") {
		return
	}
	list, err := resources.DecodeDocuments(text, resources.DecodeOptions{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, r := range list {
		home := resources.Home{Zone: "zone-1"}
		if err := resources.Validate(r, home); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// runSnippet runs the commands of a block and returns the block with their current output.
func runSnippet(t *testing.T, dir string, block []string) (now []string, commands int) {
	t.Helper()
	for _, line := range block {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		commands++
		args := strings.Fields(command)
		if args[0] != "causewayctl" {
			t.Fatalf("%s: want a command of causewayctl", command)
		}
		cmd := exec.Command(filepath.Join(programs(), "causewayctl"), args[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		now = append(now, line)
		now = append(now, slices.DeleteFunc(strings.Split(string(out), "\n"), func(s string) bool { return s == "" })...)
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			now = append(now, fmt.Sprintf("(exit status %d)", exit.ExitCode()))
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return now, commands
}
