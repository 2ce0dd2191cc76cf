package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

var faultsLong = flag.Bool("faults-long", false,
	"the tests of faults go through all of them, for as long as others need to notice")

// stop is a set of processes that SIGSTOP stops at once, and a duration.
type stop struct {
	name     string
	lasts    time.Duration
	replicas []int
	members  []int
	zones    []string
}

const (
	// pastLease exceeds the time until a silent replica counts as gone, pastSession that until a silent session does.
	pastLease   = 7 * time.Second
	pastSession = 50 * time.Second
)

func stops() []stop {
	all := []stop{{"a replica, a member and a zone", pastLease, []int{1}, []int{0}, []string{"zone-2"}}}
	if !*faultsLong {
		return all
	}
	for i := range 3 {
		all = append(all, stop{fmt.Sprint("replica ", i), pastLease, []int{i}, nil, nil},
			stop{fmt.Sprint("member ", i), pastLease, nil, []int{i}, nil})
	}
	return append(all,
		stop{"two members", pastLease, nil, []int{0, 2}, nil},
		stop{"two replicas until sessions end", pastSession, []int{0, 2}, nil, nil},
		stop{"zones until their sessions end", pastSession, nil, nil, []string{"zone-0", "zone-1"}},
		stop{"all replicas until their leases end", pastLease, []int{0, 1, 2}, nil, nil},
		stop{"all members until the leases end", pastLease, nil, []int{0, 1, 2}, nil})
}

// TestFaultsStopped stops replicas, members of etcd and zones for longer than their leases during writes to all. They
// continue as if nothing had happened. Acknowledged writes, according to the ledger, are everywhere, and nothing else
// is. Each zone has one session. Stopped servers are reported as away meanwhile, and none afterwards. No request from
// Envoy to Envoy is lost.
func TestFaultsStopped(t *testing.T) {
	t.Parallel()
	k := newKilledInTurn(t)
	envoys := &restartEnvoys{enforcement: &enforcement{mesh: k.mesh, zone1: k.zones["zone-1"]}}
	envoys.start()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var g errgroup.Group
	g.Go(func() error { return envoys.keepAsking(ctx) })
	for _, s := range stops() {
		k.stopped(s)
		if t.Failed() {
			t.Fatalf("%s; -seed %d repeats the choices", s.name, *crashSeed)
		}
	}
	cancel()
	k.must(g.Wait())
	written := 0
	for _, l := range k.writers {
		written += l.written
	}
	t.Logf("%d acknowledged writes, %d requests from Envoy to Envoy", written, envoys.calls.Load())
	k.must(more(envoys.calls.Load()))
}

// stopped writes on all servers while some are stopped, and compares.
func (k *killedInTurn) stopped(s stop) {
	k.t.Helper()
	writing, end := context.WithCancel(k.t.Context())
	var g errgroup.Group
	for _, l := range k.writers {
		rng := rand.New(rand.NewPCG(k.rng.Uint64(), 0))
		g.Go(func() error { return l.insist(writing, rng) })
	}
	defer func() { end(); _ = g.Wait() }()
	k.pause(100, 200)
	var instances []string
	for _, i := range s.replicas {
		instances = append(instances, k.instance(k.globals[i]))
	}
	resume := k.hold(s)
	begun := time.Now()
	k.calledAway(s, instances)
	during(k.t.Context(), s.lasts-time.Since(begun))
	resume()
	mended := time.Now()
	end()
	k.must(g.Wait())
	for _, l := range k.writers {
		k.must(l.settle(k.t.Context()))
	}
	k.agrees()
	k.oneSessionEach()
	servers := k.globals
	for _, zone := range k.zones {
		servers = append(servers[:len(servers):len(servers)], zone)
	}
	for _, server := range servers {
		k.noProblems(server.API.URL())
	}
	k.t.Logf("%s for %s: all agree, and doctor finds nothing, %s later", s.name,
		mended.Sub(begun).Round(time.Millisecond), time.Since(mended).Round(time.Millisecond))
}

// hold stops all of them, and returns a function that continues them.
func (k *killedInTurn) hold(s stop) (resume func()) {
	k.t.Helper()
	var undo []func()
	for _, i := range s.members {
		k.etcd.Members[i].Freeze(k.t)
		undo = append(undo, k.etcd.Members[i].Thaw)
	}
	for _, i := range s.replicas {
		k.globals[i].Pause()
		undo = append(undo, k.globals[i].Resume)
	}
	for _, name := range s.zones {
		k.zones[name].Pause()
		undo = append(undo, k.zones[name].Resume)
	}
	resume = func() {
		for _, one := range undo {
			one()
		}
	}
	k.t.Cleanup(resume) // a stopped process does not end by SIGTERM
	return resume
}

// calledAway waits until the other servers report the stopped ones as away: replicas after their leases end, zones
// after their sessions end.
func (k *killedInTurn) calledAway(s stop, instances []string) {
	k.t.Helper()
	if len(s.members) > 1 || len(s.replicas) == 3 {
		return // no other server can know
	}
	asked := k.globals[slices.IndexFunc([]int{0, 1, 2}, func(i int) bool { return !slices.Contains(s.replicas, i) })]
	for _, gone := range instances {
		k.eventually(asked.Name()+" to list no replica that is stopped", func(ctx context.Context) error {
			raw, err := k.CTL(ctx, asked, nil, "get", "replicas")
			if err == nil && strings.Contains(string(raw), gone) {
				err = fmt.Errorf("it lists %s:\n%s", gone, raw)
			}
			return err
		})
	}
	if s.lasts < pastSession {
		return
	}
	for _, name := range s.zones {
		k.names(asked.API.URL(), "zone", name, "offline since")
	}
}
