package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Tests whose names begin with Counterparts, Helm, Judge, Promtool or Release need tools that take minutes to build, so `make test`
// leaves them out and `make test-deploy` runs them: see the Makefile.

// tool is the path of a program that make tools-deploy installs.
func tool(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(root, ".tools", "bin", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("no %s: run make tools-deploy (%v)", name, err)
	}
	return path
}

// feed runs a program with the input.
func feed(t *testing.T, input, program string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdin, cmd.Dir = strings.NewReader(input), root
	out, err := cmd.CombinedOutput()
	return string(out), err
}
