package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// endsWithin is how long a server may take to end on SIGTERM, whatever its peers do.
const endsWithin = 10 * time.Second

// TestReplicaEndsWithoutEtcd checks that a global ends on SIGTERM while its etcd is frozen, gone or unreachable, with a
// zone and with requests that wait for etcd.
func TestReplicaEndsWithoutEtcd(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t, 1)
	m := newCluster(t)
	link, err := cluster.NewLink(t.Context(), strings.TrimPrefix(etcd.Members[0].Endpoint, "http://"))
	m.must(err)
	t.Cleanup(func() { _ = link.Close() })
	m.global, err = m.StartGlobal(t.Context(), cluster.GlobalConfig{Args: []string{"--store", "etcd", "--etcd-endpoints",
		"http://" + link.Address()}})
	m.must(err)
	zone := m.startZone("zone-1")
	member := etcd.Members[0]
	for _, c := range []struct {
		name     string
		do, undo func()
	}{
		{"frozen", func() { member.Freeze(t) }, member.Thaw},
		{"gone", member.Kill, func() { member.Start(t); member.Ready(t) }},
		{"no way to it", func() { link.Set(cluster.Weather{Frozen: true}) }, func() { link.Set(cluster.Weather{}) }},
		{"no way from it", func() { link.Set(cluster.Weather{FrozenDown: true}) }, func() { link.Set(cluster.Weather{}) }},
		{"refused", func() { link.Set(cluster.Weather{Cut: true}) }, func() { link.Set(cluster.Weather{}) }},
	} {
		for _, after := range []time.Duration{0, 7 * time.Second} { // before and after its lease ended
			c.do()
			asking, stop := context.WithCancel(t.Context())
			for i := range 8 {
				for _, s := range []*cluster.Server{m.global, zone} {
					go func() {
						name := fmt.Sprintf("waits-%d", i)
						_ = s.API.Put(asking, "/meshes/default/meshtimeouts/"+name, timeoutOf(name, "1"))
					}()
				}
			}
			during(t.Context(), after)
			took, err := m.ends(m.global)
			t.Logf("%s for %s: the global ended after %s", c.name, after, took.Round(time.Millisecond))
			if err != nil {
				t.Fatalf("etcd %s for %s: %v", c.name, after, err)
			}
			stop()
			c.undo()
			m.must(m.global.Start(t.Context()))
		}
	}
}

// ends stops a server, and returns how long that took.
func (m *mesh) ends(s *cluster.Server) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(m.t.Context(), endsWithin)
	defer cancel()
	begun := time.Now()
	err := s.Stop(ctx)
	return time.Since(begun), err
}
