package bridge

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

var (
	killRounds = flag.Int("kill-rounds", 2, "rounds of TestKubernetesServersKilledDuringWrites; 20 is the long form")
	killWrites = flag.Int("kill-writes", 150, "writes by kubectl in each of them; 1000 is the long form")
	killSeed   = flag.Uint64("kill-seed", 0, "what makes its choices; 0 takes another one each time")
)

// killElsewhere is the number of writes in the zone beside the cluster while kubectl writes.
const killElsewhere = 10

// killChunk returns the number of writes of one kubectl apply and of the kubectl delete after it.
func killChunk() (applied, deleted int) {
	chunk := max(50, *killWrites/5)
	return chunk - chunk/6, chunk / 6
}

// TestKubernetesServersKilledDuringWrites kills the zone of a cluster, its global or both, again and again, while kubectl writes
// and deletes in the cluster and users write in another zone. After each round everything is everywhere what was written
// last, and nothing else is: in the cluster, in both zones and in the global. In every other round the API server refuses
// what nobody judges, and kubectl tries again.
func TestKubernetesServersKilledDuringWrites(t *testing.T) {
	t.Parallel()
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-kill-seed %d", seed)
	w := newWorld(t)
	g := w.global()
	k := &killing{world: w, global: g, zone: w.zone(g.join("zone-1")...), other: w.plainZone("zone-2", g.join("zone-2")...),
		rng: rand.New(rand.NewPCG(seed, 0)), last: authored{}, kills: map[string]int{}}
	for round := range *killRounds {
		began := time.Now()
		k.fail = round%2 == 1
		k.zone.webhooks(map[bool]string{false: "Ignore", true: "Fail"}[k.fail])
		for before := k.written; k.written < before+*killWrites; {
			k.chunk()
		}
		k.agree(round)
		t.Logf("round %d: %d writes in all, %d tries, %v, %d objects, %s", round, k.written, k.tries, k.kills, len(k.last),
			time.Since(began).Round(time.Second))
	}
	k.zone.measures(`causeway_kubernetes_followed{type="MeshTimeout"} 1`)
	if k.kills["zone-1"] == 0 || k.kills["global"] == 0 {
		t.Errorf("killed were only %v", k.kills)
	}
}

// killing are servers that are killed, and what users wrote last.
type killing struct {
	*world

	global, zone, other *zone
	rng                 *rand.Rand
	last                authored
	// fail is set while the API server refuses what nobody judges.
	fail bool
	// value is that of the last write, written the number of writes in the cluster, tries the calls of kubectl for them.
	value, written, tries int
	kills                 map[string]int
}

// chunk makes the writes of one kubectl apply, one kubectl delete and some in the other zone, and kills servers meanwhile.
// Where the API server lets it, the zone is away while objects are deleted.
func (k *killing) chunk() {
	k.t.Helper()
	applied, deleted := killChunk()
	puts, values, deletes := k.change("zone-1", applied, deleted)
	documents, names := map[string]string{}, []string{}
	for _, id := range puts {
		documents[strings.ToLower(id.kind)+".kuma.io/"+id.name] = id.object(values[id])
	}
	for _, id := range deletes {
		names = append(names, id.kind+"/"+id.name)
	}
	k.written += len(documents) + len(names)
	elsewhere, last, gone := k.change("zone-2", killElsewhere, killElsewhere/4)
	k.during(func() error {
		return errors.Join(k.patiently(unapplied(documents), "apply", "-f", "-"), k.elsewhere(elsewhere, last, gone))
	})
	if len(names) == 0 {
		return
	}
	remove := func() error {
		return k.patiently(func(string) string { return "" }, append([]string{"delete", "-n", "backend-ns", "--ignore-not-found"}, names...)...)
	}
	if k.fail {
		k.during(remove)
		return
	}
	k.zone.Kill() // it sees no deletion
	k.kills[k.zone.Name()]++
	must(k.t, remove())
	k.zone.start()
}

// during kills servers until a work is done.
func (k *killing) during(work func() error) {
	k.t.Helper()
	done := make(chan error, 1)
	go func() { done <- work() }()
	for {
		select {
		case err := <-done:
			must(k.t, err)
			return
		case <-time.After(time.Duration(200+k.rng.IntN(2500)) * time.Millisecond):
			k.kill()
		}
	}
}

// kill kills one server, or both at once, and starts them again, in any order.
func (k *killing) kill() {
	k.t.Helper()
	victims := [][]*zone{{k.zone}, {k.global}, {k.zone, k.global}, {k.global, k.zone}}[k.rng.IntN(4)]
	for _, victim := range victims {
		victim.Kill()
		k.kills[victim.Name()]++
	}
	for _, victim := range victims {
		victim.start()
	}
}

// change chooses what is written in a zone, with the last value of each, and what is deleted then. Some of that is written
// again later.
func (k *killing) change(zone string, writes, deletions int) (puts []authoredID, values map[authoredID]int, deletes []authoredID) {
	values = map[authoredID]int{}
	for range writes {
		id := k.pick(zone)
		k.value++
		if values[id] == 0 {
			puts = append(puts, id)
		}
		values[id] = k.value
	}
	maps.Copy(k.last, values)
	for range deletions {
		if id := k.pick(zone); k.last[id] != 0 {
			deletes = append(deletes, id)
			delete(k.last, id)
		}
	}
	return puts, values, deletes
}

// pick is the identity of something in a zone.
func (k *killing) pick(zone string) authoredID {
	kinds := authoredKinds()
	return authoredID{kind: kinds[k.rng.IntN(len(kinds))].kind, zone: zone, name: fmt.Sprintf("p%02d", k.rng.IntN(100))}
}

// patiently runs a command of alice's, again and again while nobody judges what she writes, and for as long as each try gets
// further. The input is of what left has after each.
func (k *killing) patiently(left func(out string) string, args ...string) error {
	in, done := left(""), false
	for !done {
		err := cluster.Until(k.t.Context(), patience, "kubectl "+args[0], func(ctx context.Context) error {
			k.tries++
			out, err := k.feedKubectl(ctx, alice, in, args...)
			if err == nil {
				done = true
				return nil
			}
			err = fmt.Errorf("%w: %s", err, out)
			inTime := ctx.Err() == nil // otherwise the try was killed: how far it came says its output
			if inTime && (!k.fail || !strings.Contains(out, "failed calling webhook") || strings.Contains(out, "denied the request")) {
				return cluster.Final(err)
			}
			rest := left(out)
			further := len(rest) < len(in) || strings.Contains(out, " deleted")
			if in = rest; further {
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unapplied returns the documents that kubectl apply has not applied yet, as its output says. They are by the name in it.
func unapplied(documents map[string]string) func(out string) string {
	return func(out string) string {
		for line := range strings.Lines(out) {
			if words := strings.Fields(line); len(words) == 2 {
				delete(documents, words[0])
			}
		}
		return strings.Join(slices.Collect(maps.Values(documents)), "")
	}
}
