package e2e

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store/backend"
	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/resources/store/fsck"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// inSteps returns the operations that have steps.
func inSteps() map[string]func(t *testing.T) *stepped {
	return map[string]func(t *testing.T) *stepped{
		"restore": restoreInSteps, "restore over another": restoreOverInSteps, "restore into etcd": restoreEtcdInSteps,
		"replace the CA": replaceInSteps,
		"repair":         repairInSteps, "first start of a global": firstStartInSteps, "upgrade of a global": upgradeInSteps,
		"first start of a zone": zoneInSteps, "join": joinInSteps,
	}
}

func restoreInSteps(t *testing.T) *stepped {
	s, backup, source := steppedGlobal(t)
	s.prepare = func(int) {}
	s.server.SetArgs("--secrets-key-file", filepath.Join(source, "secrets.key"))
	s.restores(backup)
	return s
}

func restoreOverInSteps(t *testing.T) *stepped {
	s, backup, _ := steppedGlobal(t)
	s.restores(backup)
	s.args = s.again
	return s
}

func restoreEtcdInSteps(t *testing.T) *stepped {
	s, backup, source := steppedGlobal(t)
	endpoints := strings.Join(etcdtest.Start(t, 1).Endpoints(), ",")
	s.prepare = func(n int) {
		s.restores(backup)
		place := []string{"--store", inEtcd, "--etcd-endpoints", endpoints, "--etcd-prefix", fmt.Sprint("/steps/", n)}
		s.args, s.again = append(s.args, place...), append(s.again, place...)
		s.server.SetArgs(append(place, "--secrets-key-file", filepath.Join(source, "secrets.key"))...)
	}
	s.program = "causewayctl"
	return s
}

func (s *stepped) restores(backup string) {
	s.program, s.refusal = "causewayctl", "causewayctl restore "+backup
	s.args = []string{"restore", backup, "--data-dir", s.server.DataDir}
	s.again = append(s.args[:len(s.args):len(s.args)], "--overwrite")
}

func replaceInSteps(t *testing.T) *stepped {
	s, _, _ := steppedGlobal(t)
	s.program, s.args = "causeway-global", []string{"replace-ca", "--data-dir", s.server.DataDir}
	return s
}

func repairInSteps(t *testing.T) *stepped {
	s, _, source := steppedGlobal(t)
	s.damage(source)
	s.program, s.args, s.refusal = "causewayctl", []string{"fsck", s.server.DataDir, "--repair"}, "causeway.db"
	return s
}

// damage flips bits of a store until fsck can repair it.
func (s *stepped) damage(dir string) {
	path := filepath.Join(dir, backend.File)
	good, err := os.ReadFile(path)
	s.must(err)
	good = good[:(len(bytes.TrimRight(good, "\x00"))/4096+2)*4096] // the rest is room to grow
	random := rand.New(rand.NewPCG(*crashSeed, 1))
	for range 1000 {
		bad := append([]byte(nil), good...)
		bad[random.IntN(len(bad))] ^= 1 << random.IntN(8)
		s.must(os.WriteFile(path, bad, 0o600))
		r, err := fsck.Check(s.t.Context(), dir, resources.DefaultSystemNamespace)
		s.must(err)
		for i := range r.Findings {
			if r.Findings[i].Where == backend.File && r.Findings[i].Repairable {
				return
			}
		}
	}
	s.t.Fatal("no damage could be repaired")
}

func firstStartInSteps(t *testing.T) *stepped {
	s, _, _ := steppedGlobal(t)
	s.prepare, s.whole = func(int) {}, writable
	return s
}

// writable checks that a server accepts a policy.
func writable(ctx context.Context, s *cluster.Server) error {
	return s.API.Put(ctx, "/meshes/default/meshtimeouts/first", timeoutOf("first", "1"))
}

// upgradeInSteps starts a global whose keys an earlier version has stored in plaintext.
func upgradeInSteps(t *testing.T) *stepped {
	s, _, source := steppedGlobal(t)
	box, err := secrets.OpenBox(secrets.Config{Dir: source})
	s.must(err)
	for name, purpose := range map[string]string{"ca.key": "server-ca", "tls.key": "server-tls"} {
		path := filepath.Join(source, "kds-tls", name)
		sealed, err := os.ReadFile(path)
		s.must(err)
		plain, err := box.Open(sealed, purpose)
		s.must(err)
		key, _ := pem.Decode(plain)
		s.must(os.WriteFile(path, pem.EncodeToMemory(key), 0o600))
	}
	ca, err := os.ReadFile(filepath.Join(source, "kds-tls", "ca.crt"))
	s.must(err)
	s.whole = func(ctx context.Context, global *cluster.Server) error {
		if caOf(t, global) != string(ca) {
			return errors.New("it has another CA")
		}
		return hasEarly(ctx, global)
	}
	return s
}

// steppedZone returns a stopped zone, and makes prepare call next with a new name and join string.
func steppedZone(t *testing.T, next func(s *stepped, zone, join string)) *stepped {
	m := newMesh(t, "zone-1")
	s := &stepped{mesh: m, server: m.zones["zone-1"], whole: connected}
	s.server.Kill()
	s.prepare = func(n int) {
		zone := fmt.Sprint("zone-", 1000+n)
		join, err := m.JoinString(t.Context(), m.global, zone)
		m.must(err)
		next(s, zone, join)
	}
	return s
}

// connected waits until the zone has a session and the mesh of its global.
func connected(ctx context.Context, zone *cluster.Server) error {
	return cluster.Until(ctx, patience, "a session", func(ctx context.Context) error { return inSession(ctx, zone) })
}

func inSession(ctx context.Context, zone *cluster.Server) error {
	if n, err := zone.Metric(ctx, "causeway_global_connected"); err != nil || n != 1 {
		return fmt.Errorf("connected: %v, %w", n, err)
	}
	return zone.API.Get(ctx, "/meshes/default", nil)
}

func zoneInSteps(t *testing.T) *stepped {
	return steppedZone(t, func(s *stepped, zone, join string) { s.server.SetArgs("--zone", zone, "--join", join) })
}

func joinInSteps(t *testing.T) *stepped {
	s := steppedZone(t, func(s *stepped, _, join string) {
		s.server.SetArgs()
		s.args = []string{"join", join, "--data-dir", s.server.DataDir}
	})
	s.program, s.refusal = "causeway-zone", "join first"
	return s
}
