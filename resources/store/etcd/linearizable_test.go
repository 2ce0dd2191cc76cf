package etcd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

var faultTime = flag.Duration("fault-time", 3*time.Second, "how long TestHistoryIsLinearizable goes on")

// One operation on one key, and its result.
type (
	input struct {
		key  int
		kind string // put, create, delete, read
		put  int
	}
	output struct {
		// unknown is set if no client learnt what happened, or whether.
		unknown bool
		// said is the store's answer: changed, same, refused; was is the result of a read, 0 for nothing.
		said string
		was  int
	}
)

// register is the model of one key: its number, 0 for none. It does not depend on etcd, views or watches.
func register() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			byKey := map[int][]porcupine.Operation{}
			for _, o := range history {
				k := o.Input.(input).key
				byKey[k] = append(byKey[k], o)
			}
			var out [][]porcupine.Operation
			for _, h := range byKey {
				out = append(out, h)
			}
			return out
		},
		Init: func() any { return 0 },
		Step: func(state, in, out any) (bool, any) {
			has, i, o := state.(int), in.(input), out.(output)
			next, said := has, "same"
			switch {
			case i.kind == "read":
				return o.unknown || o.was == has, has
			case i.kind == "create" && has != 0, i.kind == "delete" && has == 0:
				said = "refused"
			case i.kind == "delete":
				next, said = 0, "changed"
			case has != i.put:
				next, said = i.put, "changed"
			}
			return o.unknown || o.said == said, next
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v -> %+v", in, out) },
	}
}

// TestHistoryIsLinearizable has servers write, refuse, change nothing and read while members are killed and paused and
// packets of one direction are lost: all results fit one order of events. Reads go through Apply, like those that
// decide a write.
func TestHistoryIsLinearizable(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 3)
	var stores []*Store
	var links []*link
	prefix := fmt.Sprintf("/linear-%d", shared.prefixes.Add(1))
	for i := range 3 {
		l := newLink(t, c.Members[i].Endpoint)
		links = append(links, l)
		stores = append(stores, open(t, Config{Endpoints: []string{l.endpoint}, Prefix: prefix,
			Timeout: 400 * time.Millisecond, WriterLease: time.Second, MaxOps: 4}))
	}
	h := &history{begin: time.Now()}
	const enough = 100
	ctx, cancel := context.WithTimeout(t.Context(), *faultTime+time.Minute) // a busy machine answers few operations
	defer cancel()
	var clients sync.WaitGroup
	for n := range 9 {
		clients.Go(func() { h.client(ctx, n, stores[n%3]) })
	}
	rounds := 0
	for ctx.Err() == nil && (time.Since(h.begin) < *faultTime || h.answered() < enough) {
		rounds++
		trouble(ctx, t, rand.New(rand.NewPCG(uint64(rounds), 7)), c, links)
	}
	cancel()
	clients.Wait()
	for _, l := range links {
		l.lose(false, false)
	}
	agree(t, stores...)
	certain := h.answered()
	t.Logf("%d operations, %d of them answered, %d rounds of faults", len(h.operations), certain, rounds)
	if certain < enough {
		t.Fatal("too few operations were answered to show anything")
	}
	if got := porcupine.CheckOperationsTimeout(register(), h.operations, time.Minute); got != porcupine.Ok {
		t.Errorf("the history is not linearizable: %s", got)
	}
}

// trouble disturbs the cluster or a server's connection to it, and undoes that.
func trouble(ctx context.Context, t *testing.T, random *rand.Rand, c *etcdtest.Cluster, links []*link) {
	i := random.IntN(3)
	m := c.Members[i]
	undo := func() {}
	switch random.IntN(5) {
	case 0:
		m.Kill()
		undo = func() { m.Start(t) }
	case 1:
		m.Freeze(t)
		undo = m.Thaw
	case 2:
		links[i].lose(true, false)
		undo = func() { links[i].lose(false, false) }
	case 3:
		links[i].lose(false, true)
		undo = func() { links[i].lose(false, false) }
	case 4:
		links[i].lose(true, true)
		undo = func() { links[i].lose(false, false) }
	}
	wait(ctx, time.Duration(500+random.IntN(1500))*time.Millisecond)
	undo()
	wait(ctx, time.Duration(random.IntN(800))*time.Millisecond)
}

// history is what all clients did and saw.
type history struct {
	begin      time.Time
	mu         sync.Mutex
	operations []porcupine.Operation
}

func (h *history) now() int64 { return int64(time.Since(h.begin)) }

// answered returns how many operations have a certain outcome.
func (h *history) answered() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, o := range h.operations {
		if !o.Output.(output).unknown {
			n++
		}
	}
	return n
}

func (h *history) client(ctx context.Context, id int, s *Store) {
	random := rand.New(rand.NewPCG(uint64(id), 1))
	for ctx.Err() == nil {
		i := input{key: random.IntN(4), kind: []string{"put", "put", "create", "delete", "read"}[random.IntN(5)],
			put: 1 + random.IntN(3)}
		call := h.now()
		o, happened := perform(s, i)
		if !happened {
			wait(ctx, 20*time.Millisecond)
			continue
		}
		end := h.now()
		if o.unknown {
			end = int64(time.Hour) // it may happen at any time
		}
		h.mu.Lock()
		h.operations = append(h.operations, porcupine.Operation{ClientId: id, Input: i, Call: call, Output: o, Return: end})
		h.mu.Unlock()
	}
}

var errAbsent = errors.New("there is none")

// perform returns the store's answer; false if the store said that nothing happened.
func perform(s *Store, i input) (output, bool) {
	key := storetest.Key(fmt.Sprint("k", i.key))
	put := storetest.Resource(key, i.put, nil)
	var b store.Batch
	var o output
	switch i.kind {
	case "put":
		b = storetest.Put(put)
	case "create":
		b = store.Batch{Ops: []store.Op{{Put: put, If: store.IfAbsent()}}}
	case "delete": // as the HTTP API deletes: an absent key is a refusal
		b = store.Batch{Ops: []store.Op{{Delete: key}}, Check: func(now store.Snapshot) error {
			if now.Get(key) == nil {
				return errAbsent
			}
			return nil
		}}
	case "read":
		b = store.Batch{Check: func(now store.Snapshot) error {
			o.was = contentOf(now.Get(key))
			return nil
		}}
	}
	commit, err := s.Apply(context.Background(), b)
	switch {
	case errors.Is(err, store.ErrUncertain):
		return output{unknown: true}, true
	case errors.Is(err, store.ErrUnavailable):
		return o, false
	case err != nil:
		o.said = "refused"
	case len(commit.Changes) > 0:
		o.said = "changed"
	default:
		o.said = "same"
	}
	return o, true
}

func contentOf(r *resources.Resource) (n int) {
	if r != nil {
		_, _ = fmt.Sscanf(string(r.Spec.JSON()), `{"content":%d`, &n)
	}
	return n
}
