package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// forgetting is two Envoys under requests whose connections, and those of their zone, cross a NAT that loses its state:
// packets are dropped for a while, and then answered by a reset, or never.
type forgetting struct {
	*revoking
	kds, xds *cluster.Link
	writers  []*ledger
	slowest  time.Duration // until all agree
}

// loss is how packets of open connections are lost, before a reset or for good.
type loss struct {
	name string
	set  func(*cluster.Link)
	mend func(*cluster.Link)
}

func losses() []loss {
	reset := func(l *cluster.Link) { l.Reset(cluster.Weather{}) }
	all := []loss{
		{"nothing comes down", func(l *cluster.Link) { l.Set(cluster.Weather{FrozenDown: true}) }, reset},
	}
	if *faultsLong {
		all = append(all, loss{"nothing goes up", func(l *cluster.Link) { l.Set(cluster.Weather{FrozenUp: true}) }, reset},
			loss{"nothing passes", func(l *cluster.Link) { l.Set(cluster.Weather{Frozen: true}) }, reset},
			loss{"open connections are forgotten", (*cluster.Link).Forget, func(*cluster.Link) {}})
	}
	return all
}

// forgottenFor is how long packets are lost. In the long form, that is longer than sessions and Envoys wait.
func forgottenFor() time.Duration {
	if *faultsLong {
		return 2 * time.Minute
	}
	return time.Second
}

func newForgetting(t *testing.T) *forgetting {
	t.Helper()
	f := &forgetting{revoking: &revoking{restartEnvoys: &restartEnvoys{enforcement: &enforcement{mesh: newMesh(t)}},
		rng: rand.New(rand.NewPCG(*crashSeed, 23))}}
	link := func(target string) *cluster.Link {
		l, err := cluster.NewLink(t.Context(), target)
		f.must(err)
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	f.kds = link(f.global.Address("kds"))
	for _, name := range []string{"zone-1", "zone-2"} {
		zone, err := f.StartZone(t.Context(), cluster.ZoneConfig{Name: name, Global: f.global, Link: f.kds})
		f.must(err)
		f.zones[name] = zone
		f.must(zone.WaitMesh(t.Context(), "default"))
	}
	f.zone1, f.zone2 = f.zones["zone-1"], f.zones["zone-2"]
	f.xds = link(f.zone1.Address("xds"))
	f.mesh.xds = f.xds.Address()
	f.start()
	f.writers = []*ledger{newLedger(f.global, "g", "meshtrafficpermissions", permissionOf, permissionValue),
		newLedger(f.zone1, "z", "meshtimeouts", timeoutOf, timeoutValue)}
	for _, l := range f.writers {
		l.next = longTimeout // requests take less
	}
	return f
}

// TestFaultsForgottenConnections drops the packets of connections between the zones and the global, and between an
// Envoy and its zone, and then resets the connections, or never does. Meanwhile no server reports a revocation as
// enforced that cannot be, and both end on SIGTERM. Afterwards the revocation holds, acknowledged writes are on both
// sides, doctor finds nothing, and no goroutines are left behind.
func TestFaultsForgottenConnections(t *testing.T) {
	t.Parallel()
	f := newForgetting(t)
	f.under(func() {
		before := f.goroutines()
		for _, l := range losses() {
			f.forgets("zones and global", f.kds, l)
			f.forgets("Envoy and zone", f.xds, l)
		}
		f.eventually("goroutines to end", func(context.Context) error {
			if now := f.goroutines(); now > before+before/4 {
				return fmt.Errorf("%d, and %d before", now, before)
			}
			return nil
		})
	})
	t.Logf("%d and %d acknowledged writes; all agreed after %s at the latest", f.writers[0].written, f.writers[1].written,
		f.slowest.Round(time.Millisecond))
}

// goroutines returns the number in both servers.
func (f *forgetting) goroutines() (sum int) {
	f.t.Helper()
	for _, s := range []*cluster.Server{f.global, f.zone1, f.zone2} {
		n, err := s.Metric(f.t.Context(), "go_goroutines")
		f.must(err)
		sum += int(n)
	}
	return sum
}

// forgets drops packets of one link during writes and a revocation, and repairs it.
func (f *forgetting) forgets(between string, link *cluster.Link, l loss) {
	f.t.Helper()
	ctx, end := context.WithCancel(f.t.Context())
	defer end()
	var g errgroup.Group
	for _, w := range f.writers {
		rng := rand.New(rand.NewPCG(f.rng.Uint64(), 0))
		g.Go(func() error { return w.insist(ctx, rng) })
	}
	l.set(link)
	lost := time.Now()
	f.apply(f.global, revokedFrontend)
	f.notYetEnforced(between, l)
	during(f.t.Context(), forgottenFor()-time.Since(lost))
	end()
	f.must(g.Wait())
	if *faultsLong && link == f.kds && l.name != losses()[3].name {
		f.names(f.global.API.URL(), "zone", "zone-1", "offline since")
	}
	for _, s := range []*cluster.Server{f.zone2, f.global} {
		took, err := f.ends(s)
		if err != nil {
			f.t.Errorf("%s, %s: %s does not end in %s: %v", between, l.name, s.Name(), took, err)
		}
		f.must(s.Start(f.t.Context()))
	}
	l.mend(link)
	mended := time.Now()
	for _, w := range f.writers {
		f.must(w.settle(f.t.Context()))
	}
	f.agree()
	f.slowest = max(f.slowest, time.Since(mended))
	f.must(cluster.Until(f.t.Context(), reconnectPatience, "the revoked client to be denied",
		func(ctx context.Context) error { return f.frontendGets(ctx, 403) }))
	f.stays(between + ", " + l.name)
	f.eventually("the rollout to be complete", func(ctx context.Context) error { return f.rollout(ctx) })
	f.remove(f.global, revokedFrontend)
	f.eventually("the client to be let in again", func(ctx context.Context) error { return f.frontendGets(ctx, 200) })
	for _, s := range []*cluster.Server{f.zone1, f.zone2, f.global} {
		f.noProblems(s.API.URL())
	}
	f.t.Logf("%s, %s: all agree, and doctor finds nothing, %s later", between, l.name,
		time.Since(mended).Round(time.Millisecond))
}

// rollout returns an error unless the global reports that both Envoys enforce the revocation. Nothing is known of the
// client, whose Dataplane has no Envoy.
func (f *forgetting) rollout(ctx context.Context) error {
	out, err := f.CTL(ctx, f.global, nil, "rollout", "status", "meshtrafficpermission", "revoked")
	if said := fmt.Sprintf("%s %v", out, err); !strings.Contains(said, "enforced by 2 of 3 proxies") {
		return errors.New(said)
	}
	return nil
}

// notYetEnforced checks for a while that the global does not report that both Envoys enforce the revocation while the
// client is served. What was in flight when the loss began may have arrived.
func (f *forgetting) notYetEnforced(between string, l loss) {
	f.t.Helper()
	for range 3 {
		if err := f.rollout(f.t.Context()); err != nil {
			continue
		}
		if f.frontendGets(f.t.Context(), 200) == nil {
			f.t.Errorf("%s, %s: the revocation is said to be enforced, and the client is served", between, l.name)
		}
	}
}

// agree waits until both sides have what was written on either.
func (f *forgetting) agree() {
	f.t.Helper()
	f.must(cluster.Until(f.t.Context(), reconnectPatience, "both sides to agree", func(ctx context.Context) error {
		for _, zone := range []*cluster.Server{f.zone1, f.zone2} {
			if err := f.writers[0].agrees(ctx, zone); err != nil {
				return err
			}
		}
		return f.writers[1].agrees(ctx, f.global)
	}))
}

// TestFaultsForgottenEtcd repeatedly drops the connections of one of two replicas to etcd, during writes to both. An
// acknowledged write or deletion is on both.
func TestFaultsForgottenEtcd(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t, 1)
	m := newCluster(t)
	link, err := cluster.NewLink(t.Context(), etcd.Members[0].Endpoint[len("http://"):])
	m.must(err)
	t.Cleanup(func() { _ = link.Close() })
	var writers []*ledger
	var key []string
	for i, endpoint := range []string{"http://" + link.Address(), etcd.Members[0].Endpoint} {
		g, err := m.StartGlobal(t.Context(), cluster.GlobalConfig{Name: fmt.Sprintf("global-%d", i),
			Args: append([]string{"--store", "etcd", "--etcd-endpoints", endpoint}, key...)})
		m.must(err)
		key = []string{"--secrets-key-file", g.DataDir + "/secrets.key"}
		writers = append(writers, newLedger(g, fmt.Sprintf("g%d", i), "meshtimeouts", timeoutOf, timeoutValue))
	}
	m.global = writers[0].server
	rng := rand.New(rand.NewPCG(*crashSeed, 29))
	rounds := 1
	if *faultsLong {
		rounds = 12
	}
	for round := range rounds {
		ctx, end := context.WithCancel(t.Context())
		var g errgroup.Group
		for _, w := range writers {
			seed := rng.Uint64()
			g.Go(func() error { return w.insist(ctx, rand.New(rand.NewPCG(seed, 0))) })
		}
		during(t.Context(), time.Duration(100+rng.IntN(300))*time.Millisecond)
		if link.Forget(); round%3 == 2 {
			link.Reset(cluster.Weather{})
		}
		forgotten := time.Now()
		during(t.Context(), time.Second+time.Duration(rng.IntN(6))*forgottenFor()/12)
		end()
		m.must(g.Wait())
		for _, w := range writers {
			m.must(w.settle(t.Context()))
		}
		for i, w := range writers {
			m.eventually("the replicas to agree", func(ctx context.Context) error { return w.agrees(ctx, writers[1-i].server) })
			m.noProblems(w.server.API.URL())
		}
		t.Logf("round %d: they agree %s after", round, time.Since(forgotten).Round(time.Millisecond))
	}
	took, err := m.ends(m.global)
	if link.Forget(); err != nil {
		t.Errorf("it ended after %s: %v", took, err)
	}
	t.Logf("%d and %d acknowledged writes", writers[0].written, writers[1].written)
}
