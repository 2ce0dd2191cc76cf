package e2e

import (
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestWalkReplicas asks everything of two globals on one store, the second of which has the zone: while both are cut
// off from etcd, and while etcd is full, with and without the zone.
func TestWalkReplicas(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.StartQuota(t, 24<<20)
	m := newCluster(t)
	linkTo := func(address string) *cluster.Link {
		link, err := cluster.NewLink(t.Context(), address)
		m.must(err)
		t.Cleanup(func() { _ = link.Close() })
		return link
	}
	link := linkTo(strings.TrimPrefix(etcd.Members[0].Endpoint, "http://"))
	first, err := m.StartGlobal(t.Context(), cluster.GlobalConfig{Name: "first", Args: []string{"--store", "etcd",
		"--etcd-endpoints", "http://" + link.Address()}})
	m.must(err)
	m.global, err = m.StartGlobal(t.Context(), cluster.GlobalConfig{Name: "second", Args: []string{"--store", "etcd",
		"--etcd-endpoints", "http://" + link.Address(), "--secrets-key-file", first.DataDir + "/secrets.key"}})
	m.must(err)
	w := newWalk(t, m, linkTo(m.global.Address("kds")))
	w.holds("well", "global", first)
	w.holds("well", "global", w.global)

	link.Set(cluster.Weather{Frozen: true})
	w.holds("etcd away", "global", w.global)
	w.holds("etcd away elsewhere", "global", first)
	link.Set(cluster.Weather{})
	w.holds("well", "global", first)
	w.holds("well", "global", w.global)

	free := etcd.Exhaust(t)
	w.holds("etcd full", "global", w.global)
	w.holds("etcd full elsewhere", "global", first)
	w.zone.Kill()
	w.holds("etcd full, zone away", "global", w.global)
	w.holds("etcd full elsewhere", "global", first)
	free()
	w.holds("zone away", "global", first)
	w.must(w.zone.Start(t.Context()))
	w.holds("well", "global", first)
	w.holds("well", "global", w.global)
}
