package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

var (
	faultTime = flag.Duration("fault-time", 6*time.Second, "how long the tests of histories make faults")
	faultLong = flag.Duration("fault-pause", 2*time.Second,
		"the longest that a fault of a history lasts; longer than the lease of a replica, 5 s, shows more")
)

// linkedReplicas are replicas with links to etcd that a test controls: each replica has one to each member.
type linkedReplicas struct {
	*replicated
	ways [][]*cluster.Link
	rng  *rand.Rand
	// done counts the faults, by kind.
	done map[string]int
}

func newLinked(t *testing.T, zones int) *linkedReplicas {
	t.Helper()
	l := &linkedReplicas{
		replicated: &replicated{etcd: etcdtest.Start(t, 3)},
		rng:        rand.New(rand.NewPCG(*crashSeed, 14)), done: map[string]int{},
	}
	l.mesh = newCluster(t)
	var key []string
	for i := range 3 {
		var endpoints []string
		var ways []*cluster.Link
		for _, m := range l.etcd.Members {
			way, err := cluster.NewLink(t.Context(), strings.TrimPrefix(m.Endpoint, "http://"))
			l.must(err)
			t.Cleanup(func() { l.must(way.Close()) })
			ways = append(ways, way)
			endpoints = append(endpoints, "http://"+way.Address())
		}
		l.ways = append(l.ways, ways)
		args := append([]string{"--store", "etcd", "--etcd-endpoints", strings.Join(endpoints, ",")}, key...)
		g, err := l.StartGlobal(t.Context(), cluster.GlobalConfig{Name: fmt.Sprintf("global-%d", i), Args: args})
		l.must(err)
		l.globals = append(l.globals, g)
		key = []string{"--secrets-key-file", filepath.Join(l.globals[0].DataDir, "secrets.key")}
	}
	l.global = l.globals[0]
	for i := range zones {
		l.startZone(fmt.Sprintf("zone-%d", i))
	}
	return l
}

// weather sets the weather of all links from a replica to etcd.
func (l *linkedReplicas) weather(replica int, w cluster.Weather) {
	for _, way := range l.ways[replica] {
		way.Set(w)
	}
}

// idleReplica is the replica whose clients request nothing that it considers a change.
const idleReplica = 2

// trouble breaks a replica, a member of etcd or the link between them for a while, and repairs it. The first time, it
// cuts the idle replica off etcd's messages: that replica then shows outdated state.
func (l *linkedReplicas) trouble(ctx context.Context) {
	l.t.Helper()
	i, first := l.rng.IntN(3), len(l.done) == 0
	if first {
		i = idleReplica
	}
	g, m := l.globals[i], l.etcd.Members[i]
	kinds := []struct {
		name     string
		do, undo func()
	}{
		{"kill a replica", g.Kill, func() { l.must(g.Start(l.t.Context())) }},
		{"stop a replica", g.Pause, g.Resume},
		{"kill a member", m.Kill, func() { m.Start(l.t) }},
		{"stop a member", func() { m.Freeze(l.t) }, m.Thaw},
		{"lose all to etcd", func() { l.weather(i, cluster.Weather{FrozenUp: true}) },
			func() { l.weather(i, cluster.Weather{}) }},
		{"lose all from etcd", func() { l.weather(i, cluster.Weather{FrozenDown: true}) },
			func() { l.weather(i, cluster.Weather{}) }},
		{"cut from etcd", func() { l.weather(i, cluster.Weather{Cut: true}) }, func() { l.weather(i, cluster.Weather{}) }},
	}
	k := kinds[l.rng.IntN(len(kinds))]
	if first {
		k = kinds[len(kinds)-2]
	}
	k.do()
	l.done[k.name]++
	during(ctx, *faultLong/4+time.Duration(l.rng.Int64N(int64(*faultLong)*3/4)))
	k.undo()
	during(ctx, time.Duration(l.rng.IntN(800))*time.Millisecond)
}

// during waits: it is how long a fault lasts, and asserts nothing.
func during(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// TestFaultsHistoryOfReplicas checks that the answers of three globals on one etcd fit one order of events: to writes,
// to requests that change nothing, to refusals and to reads that wait for a revision. Meanwhile replicas and members
// are killed and stopped, and messages are lost in one direction. Reads that wait for nothing never go back on one
// replica. Afterwards all replicas and the zone have the same state.
func TestFaultsHistoryOfReplicas(t *testing.T) {
	t.Parallel()
	l := newLinked(t, 1)
	h := newHistory(l.globals...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clients sync.WaitGroup
	for id := range 9 {
		clients.Go(func() { h.client(ctx, id, id%3, id%3 == idleReplica) })
	}
	for !h.enough(*faultTime) {
		l.trouble(ctx)
		h.others()
	}
	cancel()
	clients.Wait()
	t.Logf("faults: %v", l.done)
	h.judge(t)
	l.alike()
	l.oneSessionOf("zone-0")
}

// alike waits until all replicas and zones have the same state, and doctor finds no problem on any.
func (l *linkedReplicas) alike() {
	l.t.Helper()
	servers := append([]*cluster.Server{}, l.globals[1:]...)
	for _, z := range l.zones {
		servers = append(servers, z)
	}
	for _, s := range servers {
		l.must(cluster.Until(l.t.Context(), reconnectPatience, s.Name()+" to have what global-0 has",
			func(ctx context.Context) error {
				return sameTimeouts(ctx, l.globals[0], s)
			}))
	}
	for _, s := range append(servers, l.global) {
		l.noProblems(s.API.URL())
	}
}

// sameTimeouts compares the timeouts of two servers.
func sameTimeouts(ctx context.Context, a, b *cluster.Server) error {
	as, err := timeouts(ctx, a)
	if err != nil {
		return err
	}
	bs, err := timeouts(ctx, b)
	if err != nil {
		return err
	}
	for name, it := range as {
		if other, ok := bs[name]; !ok || timeoutValue(other) != timeoutValue(it) {
			return fmt.Errorf("%s on %s is %s, on %s %s", name, a.Name(), it.Spec, b.Name(), other.Spec)
		}
	}
	if len(as) != len(bs) {
		return fmt.Errorf("%s has %d, %s has %d", a.Name(), len(as), b.Name(), len(bs))
	}
	return nil
}

// oneSessionOf waits until all replicas report that a zone has one session, with a running replica.
func (l *linkedReplicas) oneSessionOf(zone string) {
	l.t.Helper()
	with := l.agree(l.globals...)
	for _, g := range l.globals {
		l.eventually("one session of "+zone+", says "+g.Name(), func(ctx context.Context) error {
			open, err := sessions(ctx, g)
			if err == nil && (len(open[zone]) != 1 || open[zone][0] != with[zone]) {
				err = fmt.Errorf("it has %q", open[zone])
			}
			return err
		})
	}
}

// TestFaultsHistoryOfAFile is the same test for one global on a file that is killed and stopped: here every read is
// current.
func TestFaultsHistoryOfAFile(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-0")
	h := newHistory(m.global)
	random := rand.New(rand.NewPCG(*crashSeed, 15))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var clients sync.WaitGroup
	for id := range 6 {
		clients.Go(func() { h.client(ctx, id, 0, id == 0) })
	}
	kills, stops := 0, 0
	for !h.enough(*faultTime / 2) {
		h.others()
		during(ctx, time.Duration(100+random.IntN(500))*time.Millisecond)
		if random.IntN(3) == 0 {
			stops++
			m.global.Pause()
			during(ctx, time.Duration(100+random.IntN(400))*time.Millisecond)
			m.global.Resume()
			continue
		}
		kills++
		m.global.Kill()
		during(ctx, time.Duration(random.IntN(200))*time.Millisecond)
		m.must(m.global.Start(t.Context()))
	}
	cancel()
	clients.Wait()
	t.Logf("killed %d times, stopped %d times", kills, stops)
	h.judge(t)
	m.must(cluster.Until(t.Context(), reconnectPatience, "the zone to have what the global has",
		func(ctx context.Context) error {
			return sameTimeouts(ctx, m.global, m.zones["zone-0"])
		}))
}
