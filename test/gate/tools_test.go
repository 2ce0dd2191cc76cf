package gate

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestOneVersionOfATool checks that a tool has the stamp of one version only: bin holds the version that was installed
// last, and a commit that wants the one before installs that again.
func TestOneVersionOfATool(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "stamps"), 0o700); err != nil {
		t.Fatal(err)
	}
	another := filepath.Join(dir, "stamps", "sh-other-v1.2.3") // of a tool named sh-other
	if err := os.WriteFile(another, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"1.9.0", "v1.10.0", "1.9.0"} {
		// A program that the machine has: it is found, and not fetched.
		if out, err := exec.Command("../tools/install.sh", dir, "deb", "sh", "dash", version).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		stamps, err := filepath.Glob(filepath.Join(dir, "stamps", "sh-*"))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(stamps)
		want := []string{filepath.Join(dir, "stamps", "sh-"+version), another}
		slices.Sort(want)
		if !slices.Equal(stamps, want) {
			t.Errorf("after %s there are the stamps %q, want %q", version, stamps, want)
		}
	}
}
