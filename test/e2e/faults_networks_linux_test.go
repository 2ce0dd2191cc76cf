package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// networks is two replicas, one of them in a separate network, like another machine. The Envoys are in the zone whose
// session is with that replica.
type networks struct {
	*killedInTurn
	far      *cluster.Namespace
	envoys   *restartEnvoys
	stranger *cluster.Client // no policy allows it
	denied   atomic.Int64
}

// TestFaultsNetworks makes a router lose packets between a replica, etcd and a zone: all in one direction, or large
// ones in both. Other traffic continues. Afterwards, acknowledged writes, according to the ledger, are everywhere, and
// nothing else is. No request from Envoy to Envoy is lost, and no denied one gets through.
func TestFaultsNetworks(t *testing.T) {
	n := newNetworks(t)
	if n == nil {
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var g errgroup.Group
	g.Go(func() error { return n.envoys.keepAsking(ctx) })
	g.Go(func() error { return n.keepDenied(ctx) })
	etcd, zone, there := n.far.Here[1], n.far.Here[0], n.far.There
	pairs := map[string][][2]string{"nothing from the replica to etcd and back to the zone": {{there, etcd},
		{zone, there}}}
	lasts := 3 * time.Second
	if *faultsLong {
		lasts = pastSession
		pairs = map[string][][2]string{
			"nothing to etcd": {{there, etcd}}, "nothing from etcd": {{etcd, there}},
			"nothing to the replica from the zone": {{zone, there}}, "nothing from the replica to the zone": {{there, zone}},
			"nothing at all": {{there, etcd}, {etcd, there}, {zone, there}, {there, zone}},
		}
	}
	for name, lost := range pairs {
		n.while(name, lasts, func() (mends []func() error, err error) {
			for _, pair := range lost {
				mend, err := n.far.Lose(t.Context(), pair[0], pair[1])
				if err != nil {
					return mends, err
				}
				mends = append(mends, mend)
				if n.connects(pair[0] == etcd || pair[1] == etcd) {
					return mends, fmt.Errorf("nothing goes from %s to %s, and yet a connection is made", pair[0], pair[1])
				}
			}
			return mends, nil
		})
	}
	n.while("no large packets", lasts, func() ([]func() error, error) {
		mend, err := n.far.Narrow(t.Context(), 600)
		return []func() error{mend}, err
	})
	cancel()
	n.must(g.Wait())
	t.Logf("%d requests from Envoy to Envoy, %d denied", n.envoys.calls.Load(), n.denied.Load())
	n.must(more(n.envoys.calls.Load()))
	n.must(more(n.denied.Load()))
}

// newNetworks returns nil where this machine does not let us make networks.
func newNetworks(t *testing.T) *networks {
	t.Helper()
	far, err := cluster.NewNamespace(t.Context())
	if errors.Is(err, cluster.ErrNoNamespaces) {
		t.Log(err) // which is no failure of the server
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(far.Close)
	k := &killedInTurn{replicated: &replicated{etcd: etcdtest.StartAt(t, "0.0.0.0")},
		rng: rand.New(rand.NewPCG(*crashSeed, 9)), untouch: map[string]string{}}
	k.mesh = newCluster(t)
	endpoint, err := url.Parse(k.etcd.Endpoints()[0])
	k.must(err)
	args := func(host string) []string {
		return []string{"--store", "etcd", "--etcd-endpoints", "http://" + host + ":" + endpoint.Port()}
	}
	k.global, err = k.StartGlobal(t.Context(), cluster.GlobalConfig{Name: "near-global", Args: args("127.0.0.1")})
	k.must(err)
	other, err := k.StartGlobal(t.Context(), cluster.GlobalConfig{
		Name: "far-global", In: far, Hosts: map[string]string{"kds": far.There},
		Args: append(args(far.Here[1]), "--secrets-key-file", k.global.DataDir+"/secrets.key"),
	})
	k.must(err)
	k.globals = []*cluster.Server{k.global, other}
	for i, g := range k.globals {
		name := fmt.Sprintf("zone-%d", i)
		k.zones[name], err = k.StartZone(t.Context(), cluster.ZoneConfig{Name: name, Global: k.global,
			Args: []string{"--global", "grpcs://" + g.Address("kds")}})
		k.must(err)
		k.writers = append(k.writers, newLedger(g, fmt.Sprintf("g%d", i), "meshtimeouts", timeoutOf, timeoutValue))
	}
	k.writers = append(k.writers, newLedger(k.zones["zone-1"], "z", "meshtimeouts", timeoutOf, timeoutValue))
	for _, l := range k.writers {
		l.next = longTimeout
	}
	n := &networks{killedInTurn: k, far: far,
		envoys: &restartEnvoys{enforcement: &enforcement{mesh: k.mesh, zone1: k.zones["zone-1"]}}}
	n.envoys.start()
	n.stranger, _ = n.envoys.client(n.zones["zone-1"], "stranger")
	return n
}

// while breaks the network for some time during writes on all servers, expects the other replica's zone to receive that
// replica's writes, and compares after the repair.
func (n *networks) while(name string, lasts time.Duration, breaks func() ([]func() error, error)) {
	n.t.Helper()
	writing, end := context.WithCancel(n.t.Context())
	var g errgroup.Group
	for _, l := range n.writers {
		rng := rand.New(rand.NewPCG(n.rng.Uint64(), 0))
		g.Go(func() error { return l.insist(writing, rng) })
	}
	defer func() { end(); _ = g.Wait() }()
	n.pause(100, 200)
	if !n.connects(true) || !n.connects(false) {
		n.t.Fatal("nothing is lost, and yet no connection is made")
	}
	begun := time.Now()
	mends, err := breaks()
	n.must(err)
	mark := fmt.Sprint("beside-", begun.UnixNano())
	n.untouch[mark] = fmt.Sprint(longTimeout)
	n.must(n.global.API.Put(n.t.Context(), "/meshes/default/meshtimeouts/"+mark, timeoutOf(mark, n.untouch[mark])))
	n.arrives(n.zones["zone-0"], mark)
	beside := time.Since(begun)
	during(n.t.Context(), lasts-beside)
	for _, mend := range mends {
		n.must(mend())
	}
	mended := time.Now()
	end()
	n.must(g.Wait())
	for _, l := range n.writers {
		n.must(l.settle(n.t.Context()))
	}
	n.agrees()
	n.noProblems(n.global.API.URL())
	n.t.Logf("%s for %s: beside it a policy took %s; all agree %s later", name, mended.Sub(begun).Round(time.Millisecond),
		beside.Round(time.Millisecond), time.Since(mended).Round(time.Millisecond))
}

// connects reports whether the replica can connect to etcd, or this machine to the replica.
func (n *networks) connects(etcd bool) bool {
	address, from := n.globals[1].Address("kds"), (*cluster.Namespace)(nil)
	if etcd {
		endpoint, err := url.Parse(n.etcd.Endpoints()[0])
		n.must(err)
		address, from = net.JoinHostPort(n.far.Here[1], endpoint.Port()), n.far
	}
	return from.Do(func() error {
		conn, err := (&net.Dialer{Timeout: 300 * time.Millisecond}).DialContext(n.t.Context(), "tcp", address)
		if err == nil {
			err = conn.Close()
		}
		return err
	}) == nil
}

// keepDenied sends requests that no policy allows, and expects the proxy to refuse each.
func (n *networks) keepDenied(ctx context.Context) error {
	for ctx.Err() == nil {
		status, body, err := n.stranger.Get(ctx, n.envoys.backend.Inbound("http-port").Port, "/")
		if ctx.Err() == nil && (err != nil || status != http.StatusForbidden) {
			return fmt.Errorf("a denied request: %d %.200s, %w", status, body, err)
		}
		n.denied.Add(1)
		during(ctx, pace)
	}
	return nil
}
