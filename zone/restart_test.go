package zone_test

import (
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/zone"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// TestRestartMovesNothing: a proxy continues to serve while its zone is down. After its restart the zone sends the
// proxy nothing, not even its identity.
func TestRestartMovesNothing(t *testing.T) {
	t.Parallel()
	z := runZone(t)
	service, _ := application(t)
	port := freePort(t)
	z.dataplane(port, service)
	z.apply("dataplanes/alice", `{"type": "Dataplane", "mesh": "default", "name": "alice", "networking": {"address": "127.0.0.1", "inbound": [{"port": 1, "servicePort": 2}]}}`)
	z.apply("meshtrafficpermissions/alice", `{"type": "MeshTrafficPermission", "mesh": "default", "name": "alice", "spec": {"rules": [{"default": {"allow": [
		{"spiffeId": {"type": "Exact", "value": "spiffe://default.zone-1.mesh.local/workload/alice"}}]}}]}}`)
	svid, _ := z.svid("alice")
	chain, key, err := svid.Marshal()
	must(t, err)
	alice := httpClient(keyPair(t, chain, key))
	e := (&world{t: t, address: z.addresses["xds"]}).startEnvoy(zone.BootstrapConfig{Dataplane: "backend"})
	eventually(t, "alice allowed", func() bool { return status(alice, port) == http.StatusOK })
	const counters = "listener_manager.(listener_added|listener_modified|listener_in_place_updated|listener_removed)|extension_config_discovery.*version|cluster_manager.cluster_(added|modified|removed)"
	const secrets = "identity_(cert|trust).*update_success|ssl_context_update_by_sds"
	before, given, versions := e.stats(counters), e.stats(secrets), e.listeners()
	if len(before) < 8 || len(given) < 3 {
		t.Fatalf("stats %v %v", before, given)
	}
	z.stop()
	if got := status(alice, port); got != http.StatusOK {
		t.Errorf("while the zone is away: %d", got)
	}
	z.start()
	eventually(t, "the proxy to ask for its identity",
		func() bool { return strings.Contains(z.metrics(), `causeway_identity_kept_total{outcome="used"} 1`) })
	if after := e.stats(counters); !maps.Equal(before, after) {
		t.Errorf("the restart moved %v to %v", before, after)
	}
	if after := e.listeners(); !maps.Equal(versions, after) {
		t.Errorf("the restart moved listeners %v to %v", versions, after)
	}
	if got := status(alice, port); got != http.StatusOK {
		t.Errorf("after the restart: %d", got)
	}
	// The stream is alive: a change still arrives.
	if code, answer := z.call(http.MethodDelete, "/meshes/default/meshtrafficpermissions/alice", ""); code != 200 {
		t.Fatalf("%d %s", code, answer)
	}
	eventually(t, "alice denied", func() bool { return status(alice, port) == http.StatusForbidden })
	if after := e.stats(secrets); !maps.Equal(given, after) {
		t.Errorf("the restart moved %v to %v", given, after)
	}
	for line := range strings.Lines(z.metrics()) {
		if strings.HasPrefix(line, "causeway_xds_responses_total") &&
			!strings.HasPrefix(line, `causeway_xds_responses_total{type="ecds"} 1`) {
			t.Errorf("sent: %s", line)
		}
	}
}

// TestAnotherKeyForSecretsKeepsTheZoneFromStarting: the zone does not start with another key, or without one. With the
// right key it starts again.
func TestAnotherKeyForSecretsKeepsTheZoneFromStarting(t *testing.T) {
	t.Parallel()
	z := runZone(t)
	z.stop()
	file := filepath.Join(z.cfg.DataDir, secrets.KeyFileName)
	key, err := os.ReadFile(file)
	must(t, err)
	for name, spoil := range map[string]func() error{
		"another key": func() error {
			return os.WriteFile(file, []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))), 0o600)
		},
		"no key": func() error { return os.Remove(file) },
	} {
		must(t, spoil())
		if err := zone.Run(context.Background(), z.cfg); !errors.Is(err, secrets.ErrWrongKey) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := os.Stat(z.cfg.ReadyFile); err == nil {
		t.Error("the ready file of the earlier run is still there")
	}
	must(t, os.WriteFile(file, key, 0o600))
	z.start()
}

// TestIdentityFilesOfAnEarlierVersion: damaged files keep the zone from starting, and are not replaced.
func TestIdentityFilesOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "identity", "default", "ca.key")
	must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	must(t, os.WriteFile(file, []byte("x"), 0o600))
	err := zone.Run(context.Background(), zone.Config{
		Zone: "zone-1", DataDir: dir, Log: discardLog(), APIAddress: "127.0.0.1:0", XDSAddress: "127.0.0.1:0",
		DiagnosticsAddress: "127.0.0.1:0",
	})
	if !errors.Is(err, identity.ErrAuthority) {
		t.Errorf("got %v", err)
	}
	if raw, err := os.ReadFile(file); err != nil || string(raw) != "x" {
		t.Errorf("the file is %q, %v", raw, err)
	}
}
