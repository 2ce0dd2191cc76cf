package zone_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/server/programtest"
	"github.com/causeway-mesh/causeway/zone"
)

// envoy is a running Envoy.
type envoy struct {
	t     *testing.T
	admin string
	log   string // the file of its output
	pid   int
	// kill ends it at once, and waits until its ports are free.
	kill func()
}

func envoyBinary(t *testing.T) string {
	t.Helper()
	path, err := programtest.Envoy()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// startEnvoy runs an Envoy with the bootstrap of a Dataplane until the test ends.
func (w *world) startEnvoy(cfg zone.BootstrapConfig) *envoy {
	w.t.Helper()
	dir := w.t.TempDir()
	cfg.XDSAddress, cfg.AdminAddress = w.address, "127.0.0.1:0"
	bootstrap, err := zone.Bootstrap(cfg)
	must(w.t, err)
	if w.wholeState {
		whole := strings.Replace(string(bootstrap), "DELTA_GRPC", "GRPC", 1)
		if whole == string(bootstrap) {
			w.t.Fatal("the bootstrap has no DELTA_GRPC")
		}
		bootstrap = []byte(whole)
	}
	file := filepath.Join(dir, "envoy.yaml")
	must(w.t, os.WriteFile(file, bootstrap, 0o600))
	return w.runEnvoy(file)
}

// runEnvoy runs an Envoy with a bootstrap file until the test ends.
func (w *world) runEnvoy(file string) *envoy {
	w.t.Helper()
	dir := filepath.Dir(file)
	addressFile := filepath.Join(dir, "admin")
	log, err := os.Create(filepath.Join(dir, "log"))
	must(w.t, err)
	cmd := exec.Command(envoyBinary(w.t), "-c", file, "--admin-address-path", addressFile, "--concurrency", "1",
		"--use-dynamic-base-id", "--log-level", "warning", "--drain-time-s", "1", "--parent-shutdown-time-s", "2",
		"--file-flush-interval-msec", "100")
	cmd.Stdout, cmd.Stderr = log, log
	must(w.t, cmd.Start())
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
		if w.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			w.t.Logf("envoy's log:\n%s", text)
		}
	})
	e := &envoy{t: w.t, log: log.Name(), pid: cmd.Process.Pid, kill: func() { must(w.t, cmd.Process.Kill()); _ = cmd.Wait() }}
	eventually(w.t, "envoy's admin address", func() bool {
		b, err := os.ReadFile(addressFile)
		e.admin = strings.TrimSpace(string(b))
		return err == nil && e.admin != ""
	})
	return e
}

// get reads a page of the admin interface.
func (e *envoy) get(path string) string {
	e.t.Helper()
	resp, err := http.Get("http://" + e.admin + path)
	must(e.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(e.t, err)
	return string(b)
}

// stats returns the statistics whose names match a regular expression, by name.
func (e *envoy) stats(filter string) map[string]string {
	e.t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(e.get("/stats?filter=" + filter)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		out[name] = value
	}
	return out
}

// counted returns stats and requires at least one: a counter that a test compares, or expects to be 0, must exist.
func (e *envoy) counted(filter string) map[string]string {
	e.t.Helper()
	out := e.stats(filter)
	if len(out) == 0 {
		e.t.Fatalf("Envoy has no statistic that matches %s", filter)
	}
	return out
}

// updates counts updates of listeners in place.
const updates = "listener_manager.listener_in_place_updated"

// listeners returns the counters that a change of listeners moves, and the version of each listener with the time of
// its last update. It omits the version of the discovery itself (lds.version), which never changes over delta xDS.
func (e *envoy) listeners() map[string]string {
	e.t.Helper()
	out := e.stats("listener_manager.(listener_added|listener_modified|listener_in_place_updated|listener_removed|listener_create_success)$")
	var dump struct {
		Configs []struct {
			Name        string
			ActiveState struct {
				VersionInfo string `json:"version_info"`
				LastUpdated string `json:"last_updated"`
			} `json:"active_state"`
		}
	}
	must(e.t, json.Unmarshal([]byte(e.get("/config_dump?resource=dynamic_listeners")), &dump))
	for _, l := range dump.Configs {
		out["listener "+l.Name] = l.ActiveState.VersionInfo + " " + l.ActiveState.LastUpdated
	}
	if len(out) < 6 || len(dump.Configs) == 0 {
		e.t.Fatalf("listeners: %v", out)
	}
	return out
}
