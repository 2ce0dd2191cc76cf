package e2e

import (
	"context"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// The kinds of stores.
const (
	inFile = "bolt"
	inEtcd = "etcd"
)

// restoring is a mesh whose servers lose their data folder and store, and are restored from backups.
type restoring struct {
	*mesh
	endpoints string
}

// place returns the flags for a store of a kind.
func (r *restoring) place(kind, prefix string) []string {
	if kind == inFile {
		return nil
	}
	return []string{"--store", inEtcd, "--etcd-endpoints", r.endpoints, "--etcd-prefix", prefix}
}

// TestRestore restores backups of a global and of a zone into either kind of store from either. Both continue: the
// global accepts the zone's credential, the authorities of identities are unchanged, and certificates from before are
// still trusted.
func TestRestore(t *testing.T) {
	t.Parallel()
	etcd := strings.Join(etcdtest.Start(t, 1).Endpoints(), ",")
	for _, from := range []string{inFile, inEtcd} {
		for _, to := range []string{inFile, inEtcd} {
			t.Run(from+" to "+to, func(t *testing.T) {
				r := &restoring{mesh: newCluster(t), endpoints: etcd}
				r.run(from, to, "/"+from+"-"+to)
			})
		}
	}
}

func (r *restoring) run(from, to, prefix string) {
	t, ctx := r.t, r.t.Context()
	var err error
	r.global, err = r.StartGlobal(ctx, cluster.GlobalConfig{Args: r.place(from, prefix+"/global/before")})
	r.must(err)
	zone, err := r.StartZone(ctx, cluster.ZoneConfig{Name: "zone-1", Global: r.global,
		Args: r.place(from, prefix+"/zone/before")})
	r.must(err)
	r.zones["zone-1"] = zone
	r.must(zone.WaitMesh(ctx, "default"))
	r.apply(r.global, earlyTimeout)
	r.apply(zone, zonesTimeout)
	r.arrives(zone, "early")
	r.arrives(r.global, "of-the-zone")
	_, before := r.client(zone, "before")
	trust := r.trust(zone)

	servers := []*cluster.Server{zone, r.global}
	for _, s := range servers {
		_, err := r.CTL(ctx, s, nil, "backup", "create", r.backupOf(s))
		r.must(err)
	}
	for _, s := range servers {
		r.must(s.Stop(ctx))
		r.must(os.Rename(s.DataDir, s.DataDir+".lost"))
	}
	r.restored(r.global, to, prefix+"/global/after")
	r.wantsItsKey(r.global)
	r.must(r.global.Start(ctx))
	r.restored(zone, to, prefix+"/zone/after")
	r.wantsItsKey(zone)
	r.must(zone.Start(ctx))

	r.arrives(zone, "early")
	r.arrives(r.global, "of-the-zone")
	r.eventually("the zone to be let in", func(ctx context.Context) error {
		if connected, err := zone.Metric(ctx, "causeway_global_connected"); err != nil || connected != 1 {
			return fmt.Errorf("connected: %v, %w", connected, err)
		}
		return nil
	})
	if now := r.trust(zone); now != trust {
		t.Errorf("the trust of the mesh was\n%s\nand is\n%s", trust, now)
	}
	_, after := r.client(zone, "after")
	if got, want := r.signer(after), r.signer(before); got != want {
		t.Errorf("identities are signed by another authority: %s, and was %s", got, want)
	}
	r.apply(r.global, lateTimeout)
	r.arrives(zone, "late")
	r.eventually("nothing to be held", func(ctx context.Context) error {
		out, err := r.CTL(ctx, zone, nil, "inspect", "sync", "-o", "json")
		if err != nil || strings.Contains(string(out), "newStore") {
			return fmt.Errorf("%s, %w", out, err)
		}
		return nil
	})
}

func (r *restoring) backupOf(s *cluster.Server) string {
	return filepath.Join(r.Dir(), s.Name()+".backup")
}

// restored restores the server's data, without its key.
func (r *restoring) restored(s *cluster.Server, kind, prefix string) {
	r.t.Helper()
	place := r.place(kind, prefix)
	_, err := r.Output(r.t.Context(), nil, "causewayctl",
		append([]string{"restore", r.backupOf(s), "--data-dir", s.DataDir}, place...)...)
	r.must(err)
	s.SetArgs(place...)
}

// wantsItsKey checks that without the key, and with another one, the server does not start, gives advice and changes
// nothing. Then it provides the right key.
func (r *restoring) wantsItsKey(s *cluster.Server) {
	r.t.Helper()
	key, other := filepath.Join(s.DataDir, "secrets.key"), "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
	for content, wants := range map[string]string{"": "secrets.key is missing", other: "sealed with another key"} {
		if content != "" {
			r.must(os.WriteFile(key, []byte(content), 0o600))
		}
		if err := s.Start(r.t.Context()); err == nil || !strings.Contains(err.Error(), wants) {
			r.t.Fatalf("%s with the key %q: %v, want %q", s.Name(), content, err, wants)
		}
		_ = os.Remove(key)
	}
	right, err := os.ReadFile(filepath.Join(s.DataDir+".lost", "secrets.key"))
	r.must(err)
	r.must(os.WriteFile(key, right, 0o600))
}

// trust returns the trust bundle of the mesh's members, according to the zone.
func (r *restoring) trust(zone *cluster.Server) string {
	r.t.Helper()
	out, err := r.CTL(r.t.Context(), zone, nil, "get", "meshtrusts", "-o", "json")
	r.must(err)
	var page struct {
		Items []struct {
			Name string
			Spec any
		}
	}
	r.must(json.Unmarshal(out, &page))
	return fmt.Sprint(page.Items)
}

// signer returns the id of the key that signed an identity.
func (r *restoring) signer(id *cluster.Identity) string {
	r.t.Helper()
	leaf, err := x509.ParseCertificate(id.Certificate.Certificate[0])
	r.must(err)
	return hex.EncodeToString(leaf.AuthorityKeyId)
}

// TestRestoredZoneTakesNothingAway restores a zone from a backup that is older than one of its policies and services,
// which another zone has through the global. The global keeps both, because it has the last copies, and reports it.
// Once they are returned, all is well.
func TestRestoredZoneTakesNothingAway(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1", "zone-2")
	zone, other := m.zones["zone-1"], m.zones["zone-2"]
	backup := filepath.Join(t.TempDir(), "zone-1.backup")
	_, err := m.CTL(t.Context(), zone, nil, "backup", "create", backup)
	m.must(err)
	m.apply(zone, zonesTimeout+"\n---\n"+otherService)
	m.arrives(m.global, "of-the-zone")
	hasShop := func(ctx context.Context) error {
		all, err := byDisplayName(ctx, other, "/meshes/default/meshservices")
		if _, ok := all["shop"]; err == nil && !ok {
			err = fmt.Errorf("%s has %d services, and not shop", other.Name(), len(all))
		}
		return err
	}
	m.eventually("the service in zone-2", hasShop)
	m.must(zone.Stop(t.Context()))
	_, err = m.Output(t.Context(), nil, "causewayctl", "restore", backup, "--data-dir", zone.DataDir, "--overwrite")
	m.must(err)
	m.must(zone.Start(t.Context()))

	m.eventually("the global to say what it holds", func(ctx context.Context) error {
		out, err := m.CTL(ctx, m.global, nil, "inspect", "sync", "--zone", "zone-1")
		for _, want := range []string{"the zone's store lacks", "the removal of 1 MeshTimeout",
			"the removal of 1 MeshService"} {
			if err == nil && !strings.Contains(string(out), want) {
				err = fmt.Errorf("it lacks %q: %s", want, out)
			}
		}
		return err
	})
	m.arrives(m.global, "of-the-zone")
	m.must(hasShop(t.Context()))
	if out, err := m.CTL(t.Context(), m.global, nil, "doctor"); exitStatus(err) != 1 ||
		!strings.Contains(string(out), "the zone's store is not the one that the global knew") {
		t.Errorf("doctor says %s (%v)", out, err)
	}

	m.apply(zone, zonesTimeout+"\n---\n"+otherService)
	m.eventually("the global to know the store", func(ctx context.Context) error {
		var status struct{ NewZoneStore *struct{} }
		err := m.global.API.Get(ctx, "/zones/zone-1/_sync", &status)
		if err == nil && status.NewZoneStore != nil {
			err = errNotYet
		}
		return err
	})
}
