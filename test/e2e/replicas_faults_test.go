package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/test/cluster"
)

var replicaRounds = flag.Int("replica-rounds", 1,
	"how many rounds TestReplicasKilledInTurn goes: each kills a replica, an etcd member, and both at once")

const (
	// untouched is the number of policies that no writer touches.
	untouched = 20
	// longTimeout is the smallest value, in milliseconds. Requests through Envoys take less.
	longTimeout = 100_000
)

// killedInTurn is a mesh of three replicas on three etcd members, with a writer on each replica and one in a zone.
type killedInTurn struct {
	*replicated
	rng     *rand.Rand
	writers []*ledger // one per replica, then that of zone-0
	untouch map[string]string
}

// TestReplicasKilledInTurn kills replicas and etcd members without warning, never two members at once, during writes to
// all. Acknowledged writes are on every replica and in every zone, and nothing else is. Untouched policies are never
// missing, and each zone has one session.
func TestReplicasKilledInTurn(t *testing.T) {
	t.Parallel()
	k := newKilledInTurn(t)
	kills := map[string]int{}
	for round := range *replicaRounds {
		k.round(round, kills)
		if t.Failed() {
			t.Fatalf("in round %d; -seed %d repeats the choices", round, *crashSeed)
		}
	}
	for _, l := range k.writers {
		t.Logf("%s acknowledged %d writes", l.server.Name(), l.written)
		if l.written < *replicaRounds {
			t.Errorf("too few writes on %s to call this a test", l.server.Name())
		}
	}
	t.Logf("seed %d, %d rounds, killed %v", *crashSeed, *replicaRounds, kills)
}

func newKilledInTurn(t *testing.T) *killedInTurn {
	t.Helper()
	k := &killedInTurn{replicated: newReplicated(t, 3, 3, 4), rng: rand.New(rand.NewPCG(*crashSeed, 8)),
		untouch: map[string]string{}}
	for i := range untouched {
		name, value := fmt.Sprintf("untouched-%d", i), fmt.Sprint(longTimeout+i)
		k.untouch[name] = value
		k.must(k.globals[i%3].API.Put(t.Context(), "/meshes/default/meshtimeouts/"+name, timeoutOf(name, value)))
	}
	for i, g := range k.globals {
		k.writers = append(k.writers, newLedger(g, fmt.Sprintf("g%d", i), "meshtimeouts", timeoutOf, timeoutValue))
	}
	k.writers = append(k.writers, newLedger(k.zones["zone-0"], "z", "meshtimeouts", timeoutOf, timeoutValue))
	for _, l := range k.writers {
		l.next = longTimeout
	}
	k.agrees()
	return k
}

// round writes on all servers while a replica, a member, and both at once are killed, in random order, and then
// compares.
func (k *killedInTurn) round(round int, kills map[string]int) {
	k.t.Helper()
	writing, stop := context.WithCancel(k.t.Context())
	var g errgroup.Group
	for _, l := range k.writers {
		rng := rand.New(rand.NewPCG(k.rng.Uint64(), 0))
		g.Go(func() error { return l.insist(writing, rng) })
	}
	// Writers end before the test, also when it fails in here.
	defer func() { stop(); _ = g.Wait() }()
	for _, kind := range k.rng.Perm(3) {
		var replica *cluster.Server
		var member *etcdtest.Member
		which, what := k.rng.IntN(3), ""
		if kind != 0 {
			member = k.etcd.Members[which]
			what += fmt.Sprintf(" m%d", which)
		}
		if which = k.rng.IntN(3); kind != 1 {
			replica = k.globals[which]
			what += " " + replica.Name()
		}
		k.pause(50, 350)
		if member != nil {
			member.Kill()
			kills["members"]++
		}
		if replica != nil {
			replica.Kill()
			kills["replicas"]++
		}
		away := k.pause(20, 700)
		if member != nil {
			member.Start(k.t)
		}
		if replica != nil {
			k.must(replica.Start(k.t.Context())) // at the first attempt, whatever the state of etcd
		}
		if member != nil {
			member.Ready(k.t)
		}
		k.t.Logf("round %d: killed%s for %s", round, what, away)
		k.untouched()
	}
	stop()
	k.must(g.Wait())
	for _, l := range k.writers {
		k.must(l.settle(k.t.Context()))
	}
	k.agrees()
	k.oneSessionEach()
}

// insist is write that continues when the server is gone or cannot write, until ctx ends. Unacknowledged writes remain
// possible.
func (l *ledger) insist(ctx context.Context, rng *rand.Rand) error {
	for ctx.Err() == nil {
		err := l.step(ctx, rng)
		if err != nil && !unanswered(err) {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond): // leaves CPU for the rest on a small machine
		case <-ctx.Done():
		}
	}
	return nil
}

// unanswered reports whether the outcome of a write is unknown: the server is gone, or reports that it cannot write.
func unanswered(err error) bool {
	status := cluster.StatusOf(err)
	return status == 0 && !errors.Is(err, errLost) || status == http.StatusServiceUnavailable
}

// settle writes until one write is acknowledged, so that all earlier ones are decided. It then adopts the stored state
// as promised, if that state is possible.
func (l *ledger) settle(ctx context.Context) error {
	last := l.path + "/" + l.prefix + "-last"
	err := cluster.Until(ctx, patience, l.server.Name()+" to write again", func(ctx context.Context) error {
		err := l.server.API.Put(ctx, last, l.doc(l.prefix+"-last", fmt.Sprint(longTimeout)))
		if err == nil {
			err = l.server.API.Delete(ctx, last)
		}
		if err != nil && !unanswered(err) {
			return cluster.Final(err)
		}
		return err
	})
	if err != nil {
		return err
	}
	return l.check(ctx)
}

// pause waits for a random time, in milliseconds: it is the length of a fault, and asserts nothing.
func (k *killedInTurn) pause(least, spread int) time.Duration {
	d := time.Duration(least+k.rng.IntN(spread)) * time.Millisecond
	select {
	case <-time.After(d):
	case <-k.t.Context().Done():
	}
	return d
}

// untouched checks that every zone has the untouched policies, at any moment.
func (k *killedInTurn) untouched() {
	k.t.Helper()
	for _, zone := range k.zones {
		has, err := timeouts(k.t.Context(), zone)
		k.must(err)
		for name, value := range k.untouch {
			if it, ok := has[name]; !ok || timeoutValue(it) != value {
				k.t.Errorf("%s lost %s, or has another value: %s", zone.Name(), name, it.Spec)
			}
		}
	}
}

// agrees waits until every replica and zone has exactly the model's state.
func (k *killedInTurn) agrees() {
	k.t.Helper()
	fromZone := k.writers[len(k.writers)-1]
	ofGlobals := maps.Clone(k.untouch)
	for _, l := range k.writers[:len(k.writers)-1] {
		l.addTo(ofGlobals)
	}
	all := maps.Clone(ofGlobals)
	fromZone.addTo(all)
	want := map[*cluster.Server]map[string]string{fromZone.server: all}
	for _, g := range k.globals {
		want[g] = all
	}
	for _, zone := range k.zones {
		if zone != fromZone.server {
			want[zone] = ofGlobals
		}
	}
	for server, model := range want {
		k.must(cluster.Until(k.t.Context(), reconnectPatience, server.Name()+" to have what the model has",
			func(ctx context.Context) error {
				has, err := timeouts(ctx, server)
				if err != nil {
					return err
				}
				for name, value := range model {
					if it, ok := has[name]; !ok || timeoutValue(it) != value {
						return fmt.Errorf("%s of %s is %q, want %s", name, server.Name(), it.Spec, value)
					}
				}
				for name := range has {
					if _, ok := model[name]; !ok {
						return fmt.Errorf("%s has %s, which was deleted or never acknowledged", server.Name(), name)
					}
				}
				return nil
			}))
	}
}

// addTo adds the promises to a model.
func (l *ledger) addTo(model map[string]string) {
	for name, value := range l.promised {
		if value != "" {
			model[name] = value
		}
	}
}

// oneSessionEach waits until all replicas report that each zone has one session with one of them.
func (k *killedInTurn) oneSessionEach() {
	k.t.Helper()
	k.agree(k.globals...)
	for _, g := range k.globals {
		k.eventually("one session each, says "+g.Name(), func(ctx context.Context) error {
			open, err := sessions(ctx, g)
			if err != nil {
				return err
			}
			for name := range k.zones {
				if len(open[name]) != 1 {
					return fmt.Errorf("%s has %q", name, open[name])
				}
			}
			return nil
		})
	}
}
