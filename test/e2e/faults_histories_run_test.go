package e2e

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestFaultsHistories checks that a global's answers about batches of policies, user tokens and token keys fit one
// order of events, while it is killed and stopped, or, for three on one etcd, while they and etcd's members are.
func TestFaultsHistories(t *testing.T) {
	t.Parallel()
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		m := newMesh(t)
		random := rand.New(rand.NewPCG(*crashSeed, 16))
		kills := 0
		historiesUnder(t, *faultTime/2, []*cluster.Server{m.global}, func(ctx context.Context) {
			during(ctx, time.Duration(100+random.IntN(500))*time.Millisecond)
			if random.IntN(3) == 0 {
				m.global.Pause()
				during(ctx, time.Duration(100+random.IntN(400))*time.Millisecond)
				m.global.Resume()
				return
			}
			kills++
			m.global.Kill()
			m.must(m.global.Start(t.Context()))
		})
		t.Logf("killed %d times", kills)
	})
	t.Run("replicas", func(t *testing.T) {
		t.Parallel()
		l := newLinked(t, 0)
		historiesUnder(t, *faultTime, l.globals, l.trouble)
		t.Logf("faults: %v", l.done)
	})
}

// leastHistory is the number of answered operations that make a history significant.
const leastHistory = 50

// longestHistory limits histories of keys, tokens and batches: Porcupine cannot decide longer ones in a minute.
const longestHistory = 20 * time.Second

// historiesUnder records histories while it calls fault repeatedly, and judges them.
func historiesUnder(t *testing.T, lasts time.Duration, servers []*cluster.Server, fault func(context.Context)) {
	r := newRecorded(servers...)
	ids, _, err := keysOf(t.Context(), servers[0], "token-signing")
	if err != nil {
		t.Fatal(err)
	}
	lasts = min(lasts, longestHistory)
	ctx, cancel := context.WithTimeout(t.Context(), 4*lasts)
	defer cancel()
	var clients sync.WaitGroup
	r.work(ctx, &clients)
	for begun := time.Now(); ctx.Err() == nil && (time.Since(begun) < lasts || !r.suffice()); {
		fault(ctx)
		r.others()
	}
	cancel()
	clients.Wait()
	r.judge(t, strings.Join(ids, " "), leastHistory)
}
