package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestJoining tests the ways in which a zone may verify its global. A zone that cannot gets nothing from the global,
// but runs.
func TestJoining(t *testing.T) {
	t.Parallel()
	m := newAnonymousMesh(t)
	pin := m.fingerprint()
	kds := m.global.Address("kds")
	wrong := strings.Repeat("0", len(pin))
	for _, tt := range []struct {
		name string
		args []string
		// refused is the zone's log message if it must not join.
		refused string
	}{
		{"by-pin", []string{"--global", "grpcs://" + kds, "--global-ca-sha256", pin}, ""},
		{"by-faith", []string{"--global", "grpcs://" + kds, "--global-insecure"}, ""},
		{"wrong-pin", []string{"--global", "grpcs://" + kds, "--global-ca-sha256", wrong}, "SHA-256"},
		{"other-ca", []string{"--global", "grpcs://" + kds, "--global-ca", m.otherCA()},
			"certificate signed by unknown authority"},
		{"in-plaintext", []string{"--global", "grpc://" + kds}, "no session with the global"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			zone, err := m.StartZone(t.Context(), cluster.ZoneConfig{Name: tt.name, Args: tt.args})
			if err != nil {
				t.Fatal(err)
			}
			err = cluster.Until(t.Context(), patience, "the outcome", func(ctx context.Context) error {
				joined := m.global.API.Get(ctx, "/zones/"+tt.name, nil) == nil
				switch {
				case joined && tt.refused != "":
					return cluster.Final(fmt.Errorf("it joined"))
				case joined, tt.refused != "" && strings.Contains(zone.Log(), tt.refused):
					return nil
				}
				return errNotYet
			})
			if err != nil {
				t.Errorf("%v; the end of its log:\n%s", err, zone.Tail(5))
			}
		})
	}
}

// TestUsedJoinString checks that a second use of a join string elsewhere is refused with a message, not a code, that
// says so and how to get another.
func TestUsedJoinString(t *testing.T) {
	t.Parallel()
	m := newMesh(t)
	join, err := m.JoinString(t.Context(), m.global, "zone-1")
	m.must(err)
	dir := t.TempDir()
	for range 2 { // who did not hear the answer asks again
		_, err = m.Output(t.Context(), strings.NewReader(join), "causeway-zone", "join", "-", "--data-dir", dir)
		m.must(err)
	}
	_, err = m.Output(t.Context(), strings.NewReader(join), "causeway-zone", "join", "-", "--data-dir", t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "the join string is not accepted: it was used already") ||
		strings.Contains(err.Error(), "rpc error") {
		t.Errorf("the second server that uses it: %v", err)
	}
}

// fingerprint returns the SHA-256 of the CA by which zones verify the global.
func (m *mesh) fingerprint() string {
	m.t.Helper()
	file, err := m.global.CAFile()
	m.must(err)
	raw, err := os.ReadFile(file)
	m.must(err)
	block, _ := pem.Decode(raw)
	if block == nil {
		m.t.Fatalf("%s holds no PEM", file)
	}
	sum := sha256.Sum256(block.Bytes)
	pin := hex.EncodeToString(sum[:])
	if !strings.Contains(m.global.Log(), pin) {
		m.t.Errorf("the global does not tell at its start what zones can pin: %s", pin)
	}
	return pin
}

// otherCA returns a file with the CA of another global.
func (m *mesh) otherCA() string {
	m.t.Helper()
	other := newMesh(m.t)
	file, err := other.global.CAFile()
	m.must(err)
	return file
}

// TestPlaintextKDS checks that with --kds-tls=false, on loopback, zones connect over grpc://.
func TestPlaintextKDS(t *testing.T) {
	t.Parallel()
	m := newCluster(t)
	var err error
	m.global, err = m.StartGlobal(t.Context(), cluster.GlobalConfig{Anonymous: true, Args: []string{"--kds-tls=false"}})
	m.must(err)
	zone, err := m.StartZone(t.Context(),
		cluster.ZoneConfig{Name: "zone-1", Args: []string{"--global", "grpc://" + m.global.Address("kds")}})
	m.must(err)
	m.apply(m.global, systemOfGlobal)
	m.arrives(zone, "of-global")
}

// TestSettings checks that a flag wins over the environment, which wins over the file.
func TestSettings(t *testing.T) {
	m := newCluster(t)
	file := filepath.Join(t.TempDir(), "zone.yaml")
	m.must(os.WriteFile(file, []byte("log-format: json\nsystem-namespace: from-file\n"), 0o600))
	t.Setenv("CAUSEWAY_SYSTEM_NAMESPACE", "from-environment")
	zone, err := m.StartZone(t.Context(), cluster.ZoneConfig{Name: "zone-1", Args: []string{"--config", file}})
	m.must(err)
	if !strings.Contains(zone.Log(), `"zone":"zone-1"`) {
		t.Errorf("the log is not JSON, as the file says:\n%s", zone.Log())
	}
	// A policy in the system namespace is a system policy, whatever it targets.
	m.apply(zone, `{type: MeshTimeout, mesh: default, namespace: from-environment, name: p, spec: {to: [{targetRef: {kind: MeshService, name: b}, default: {http: {requestTimeout: 1s}}}]}}`)
	if it := m.arrives(zone, "p"); it.Labels["kuma.io/policy-role"] != "system" {
		t.Errorf("the role is %q: the environment did not say which namespace is the system's",
			it.Labels["kuma.io/policy-role"])
	}
}

// TestPages checks the pages that other tools expect of both servers.
func TestPages(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1")
	for _, s := range []*cluster.Server{m.global, m.zones["zone-1"]} {
		var index struct{ Product, Version, InstanceID, ClusterID string }
		m.must(s.API.Get(t.Context(), "/", &index))
		if index.Product != "Causeway" || index.Version == "" || index.InstanceID == "" || len(index.ClusterID) != 36 {
			t.Errorf("%s: GET / is %+v", s.Name(), index)
		}
		for _, path := range []string{"/zones", "/zones/_overview"} {
			err := s.API.Get(t.Context(), path, new(map[string]any))
			if known := s == m.global; known != (err == nil) || err != nil &&
				!strings.Contains(err.Error(), "/std-errors/elsewhere") {
				t.Errorf("%s: GET %s: %v", s.Name(), path, err)
			}
		}
		for _, path := range []string{
			"/meshes", "/meshes/default", "/meshes/default/meshtrafficpermissions", "/meshes/default/dataplanes", "/_resources",
			"/policies", "/who-am-i", "/global-insight", "/_kri/kri_m____default_",
		} {
			var page map[string]any
			if err := s.API.Get(t.Context(), path, &page); err != nil || len(page) == 0 {
				t.Errorf("%s: GET %s: %v, %v", s.Name(), path, page, err)
			}
		}
		for _, path := range []string{"/livez", "/readyz"} {
			if _, err := s.Diagnostics(t.Context(), path); err != nil {
				t.Error(err)
			}
		}
		if revision, err := s.Revision(t.Context()); err != nil || revision < 1 {
			t.Errorf("%s: the metric of the revision is %v, %v", s.Name(), revision, err)
		}
	}
}
