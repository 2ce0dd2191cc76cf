package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestHealthcheck checks both servers as the containers do: with settings from the environment and from a file.
func TestHealthcheck(t *testing.T) {
	c := newCluster(t)
	global, err := c.StartGlobal(t.Context(), cluster.GlobalConfig{})
	must(t, err)
	zone, err := c.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Global: global})
	must(t, err)
	for program, s := range map[string]*cluster.Server{"causeway-global": global, "causeway-zone": zone} {
		ask := func(args ...string) (string, error) {
			cmd := exec.CommandContext(t.Context(), filepath.Join(programs(), program),
				append([]string{"healthcheck"}, args...)...)
			cmd.Env = append(os.Environ(), "CAUSEWAY_DIAGNOSTICS_ADDRESS="+s.Address("diagnostics"))
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		if out, err := ask(); err != nil || out != "ok\n" {
			t.Errorf("%s: %q, %v", program, out, err)
		}
		file := filepath.Join(t.TempDir(), "settings.yaml")
		must(t, os.WriteFile(file, []byte("diagnostics-address: 127.0.0.1:1\nlog-level: debug\n"), 0o600))
		if out, err := ask("--live", "--config", file); err != nil {
			t.Errorf("%s: the environment wins over the file: %q, %v", program, out, err)
		}
		if out, err := ask("--diagnostics-address", "127.0.0.1:1"); err == nil || !strings.Contains(out, "127.0.0.1:1") {
			t.Errorf("%s: where nobody listens: %q, %v", program, out, err)
		}
		must(t, s.Stop(t.Context()))
		if out, err := ask(); err == nil || cmdStatus(err) != 1 {
			t.Errorf("%s that has ended: %q, %v", program, out, err)
		}
	}
}

func cmdStatus(err error) int {
	if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // what os/exec returns, unwrapped
		return exit.ExitCode()
	}
	return -1
}
