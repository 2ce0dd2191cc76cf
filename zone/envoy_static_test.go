package zone_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/zone"
)

// staticBootstrap returns the zone's bootstrap with the guide's listeners and clusters instead of its own.
func staticBootstrap(t *testing.T, generated []byte, web, db int) []byte {
	t.Helper()
	var bootstrap map[string]any
	must(t, yaml.Unmarshal(generated, &bootstrap))
	dynamic := bootstrap["dynamic_resources"].(map[string]any)
	delete(dynamic, "lds_config")
	delete(dynamic, "cds_config")
	text, err := os.ReadFile("../docs/own-envoy/listeners.yaml")
	must(t, err)
	var listeners []any
	must(t, yaml.Unmarshal([]byte(strings.NewReplacer("10080", fmt.Sprint(web), "10432",
		fmt.Sprint(db)).Replace(string(text))), &listeners))
	bootstrap["static_resources"].(map[string]any)["listeners"] = listeners
	out, err := yaml.Marshal(bootstrap)
	must(t, err)
	return out
}

// TestFiltersForAnEnvoyWithListenersOfItsOwn: Envoy denies everyone until a client is allowed, and applies changes
// live.
func TestFiltersForAnEnvoyWithListenersOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	web, db := freePort(t), freePort(t)
	w.apply(fmt.Sprintf(`{type: Dataplane, mesh: default, name: backend, labels: {app: backend}, networking: {address: 127.0.0.1, inbound: [
  {name: web, port: %d, servicePort: 1, protocol: http}, {name: db, port: %d, servicePort: 2}]}}`, web, db))
	generated, err := zone.Bootstrap(zone.BootstrapConfig{Dataplane: "backend", XDSAddress: w.address,
		AdminAddress: "127.0.0.1:0"})
	must(t, err)
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	must(t, os.WriteFile(file, staticBootstrap(t, generated, web, db), 0o600))
	w.runEnvoy(file)
	alice, bob := w.certificate("alice"), w.certificate("bob")
	echoes := func() bool {
		got, err := converse(alice, db, "hello\nhello", time.Second)
		return err == nil && got == "hello\nhello\n"
	}
	eventually(t, "default deny", func() bool { return status(httpClient(alice), web) == http.StatusForbidden })
	if echoes() {
		t.Error("alice is let in before anybody is allowed")
	}
	w.apply(allowAlice)
	eventually(t, "alice allowed", func() bool { return status(httpClient(alice), web) == http.StatusOK && echoes() })
	if got := status(httpClient(bob), web); got != http.StatusForbidden {
		t.Errorf("bob got %d", got)
	}
	w.apply(strings.ReplaceAll(allowAlice, "workload/alice", "workload/bob"))
	eventually(t, "bob allowed, and alice not", func() bool {
		return status(httpClient(bob), web) == http.StatusOK &&
			status(httpClient(alice), web) == http.StatusForbidden && !echoes()
	})
}
