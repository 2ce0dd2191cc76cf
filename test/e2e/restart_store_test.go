package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/test/peer"
)

// TestProxiesOfAStoreThatMoves checks that the record of what proxies hold stays with the data folder. A zone whose
// store is copied into etcd, or restored from a backup in the same folder, sends its proxies nothing. A zone in a new
// folder, or with that file damaged, sends them new identities, and nothing else.
func TestProxiesOfAStoreThatMoves(t *testing.T) {
	t.Parallel()
	r := &restart{mesh: newCluster(t)}
	r.zone = r.startZone("zone-1")
	r.apply(r.zone, restartPermission("all", "", "of-all"))
	for _, name := range []string{"proxy-0", "proxy-1", "proxy-2"} {
		r.apply(r.zone, "{type: Dataplane, mesh: default, name: "+name+
			", networking: {address: 127.0.0.1, inbound: [{name: main, port: 10000, servicePort: 20000, protocol: tcp}]}}")
		p, err := peer.ConnectProxy(t.Context(), peer.ProxyConfig{XDS: r.zone.Address("xds"), Mesh: "default",
			Dataplane: name, Secrets: true})
		r.must(err)
		t.Cleanup(func() { _ = p.Close() })
		r.proxies = append(r.proxies, p)
	}
	r.all("to have all", func(_ int, p *peer.Proxy) bool { return p.Complete() })
	nothing := func(int) []string { return nil }
	identities := func(i int) []string {
		return []string{"identity_cert:default/" + []string{"proxy-0", "proxy-1", "proxy-2"}[i]}
	}
	backup := filepath.Join(r.Dir(), "zone.backup")
	ctl := func(args ...string) {
		t.Helper()
		_, err := r.Output(t.Context(), nil, "causewayctl", args...)
		r.must(err)
	}
	_, err := r.CTL(t.Context(), r.zone, nil, "backup", "create", backup)
	r.must(err)
	etcd := []string{"--etcd-endpoints", strings.Join(etcdtest.Start(t, 1).Endpoints(), ","), "--etcd-prefix", "/zone"}
	file := filepath.Join(r.zone.DataDir, "holdings.sealed")
	key, err := os.ReadFile(filepath.Join(r.zone.DataDir, "secrets.key"))
	r.must(err)
	for _, step := range []struct {
		what string
		do   func()
		want func(int) []string
	}{
		{"copied into etcd", func() {
			ctl(append([]string{"migrate-store", "--to", "etcd", "--data-dir", r.zone.DataDir}, etcd...)...)
			r.zone.SetArgs(append([]string{"--zone", "zone-1", "--store", "etcd"}, etcd...)...)
		}, nothing},
		{"restored where it was", func() {
			ctl("restore", backup, "--data-dir", r.zone.DataDir, "--overwrite")
			r.zone.SetArgs("--zone", "zone-1")
		}, nothing},
		{"damaged and repaired", func() {
			raw, err := os.ReadFile(file)
			r.must(err)
			raw[len(raw)/2] = '!'
			r.must(os.WriteFile(file, raw, 0o600))
			ctl("fsck", r.zone.DataDir, "--repair")
			if _, err := os.Stat(file); !os.IsNotExist(err) {
				t.Errorf("fsck leaves the damaged file: %v", err)
			}
		}, identities},
		{"restored elsewhere", func() {
			r.must(os.Rename(r.zone.DataDir, r.zone.DataDir+".lost"))
			ctl("restore", backup, "--data-dir", r.zone.DataDir)
			if _, err := os.Stat(file); !os.IsNotExist(err) {
				t.Errorf("the backup has what proxies hold: %v", err)
			}
			r.must(os.WriteFile(filepath.Join(r.zone.DataDir, "secrets.key"), key, 0o600))
		}, identities},
		{"only started again", func() {}, nothing},
	} {
		r.must(r.zone.Stop(t.Context()))
		step.do()
		r.restarted(t)
		r.came(step.what, step.want)
	}
}
