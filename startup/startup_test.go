package startup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/server/programtest"
)

// TestNothingIsCollectedBeforeMain checks that no program collects garbage while it prints its version.
func TestNothingIsCollectedBeforeMain(t *testing.T) {
	t.Parallel()
	dir, err := programtest.Build(t.Context(), "release", nil, "./cmd/...")
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"causewayctl": {"version", "--client"}, "causeway-global": {"version"}, "causeway-zone": {"version"},
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, name), args...)
		cmd.Env = append(os.Environ(), "GODEBUG=gctrace=1", "GOGC=")
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, said)
		}
		if strings.Contains(string(said), "gc 1 @") {
			t.Errorf("%s collected garbage:\n%s", name, said)
		}
	}
}
