package kds

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// queuedStore serves its writers one after another, in the order in which they come, as durable stores do.
type queuedStore struct {
	store.Store
	queue *store.Queue
	// before runs before each batch is committed.
	before func(store.Batch)
	// order holds who wrote each batch, and how many operations it had.
	order []turn
}

type turn struct {
	by  string
	ops int
}

func newQueuedStore(t *testing.T, before func(*queuedStore, store.Batch)) *queuedStore {
	t.Helper()
	s := &queuedStore{Store: store.NewMemory(), queue: store.NewQueue(100)}
	s.before = func(b store.Batch) { before(s, b) }
	go s.queue.Serve(s.commit)
	t.Cleanup(s.queue.Stop)
	return s
}

func (s *queuedStore) Apply(ctx context.Context, b store.Batch) (*store.Commit, error) {
	return s.queue.Apply(ctx, b)
}

func (s *queuedStore) commit(group []*store.Request) {
	for _, r := range group {
		s.before(r.Batch)
		if by := writerOf(r.Batch); by != "" {
			s.order = append(s.order, turn{by, len(r.Batch.Ops)})
		}
		r.Answer(s.Store.Apply(context.Background(), r.Batch))
	}
}

// writerOf returns whose services a batch writes; "" for another batch.
func writerOf(b store.Batch) string {
	for _, op := range b.Ops {
		if op.Put != nil && op.Put.Type == resources.TypeMeshService {
			return cmp.Or(op.Put.Zone(), "user")
		}
	}
	return ""
}

func servicesOf(t *testing.T, zone string, n, nonce int) (all []*discovery.Resource) {
	t.Helper()
	for i := range n {
		all = append(all, wireOf(t, zone, written(t, zoneHome(zone), resources.Key{Type: resources.TypeMeshService,
			Mesh: "default", Name: fmt.Sprintf("s-%d", i)}, fmt.Sprintf(`{"selector":{"dataplaneTags":{"app":"v-%d"}}}`, nonce))))
	}
	return all
}

// TestOthersWriteBetweenBatches has a zone change 1,200 services in one message, while another zone and a user write each
// time that some of them are made durable: whoever comes meanwhile is next, and does not wait for the rest.
func TestOthersWriteBetweenBatches(t *testing.T) {
	t.Parallel()
	const changes = 1200
	var small *peer
	var user func(int)
	nonce := 0
	s := newQueuedStore(t, func(s *queuedStore, b store.Batch) {
		if writerOf(b) != "big" || len(b.Ops) < 2 {
			return
		}
		nonce++
		if err := small.up.Send(&discovery.DeltaDiscoveryResponse{TypeUrl: string(resources.TypeMeshService),
			Nonce: fmt.Sprint(nonce), Resources: servicesOf(t, "small", 1, nonce)}); err != nil {
			t.Error(err)
		}
		user(nonce)
		eventually(t, "the others to wait for their turn", func() bool { return s.queue.Len() == 2 })
	})
	g := startGlobal(t, s)
	user = func(nonce int) {
		r := written(t, globalHome, resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "of-user"},
			fmt.Sprintf(`{"selector":{"dataplaneTags":{"app":"v-%d"}}}`, nonce))
		go func() { _, _ = s.Apply(context.Background(), store.Batch{Ops: []store.Op{{Put: r}}}) }()
	}
	small = dialPeer(t, "small", g.address, exchange.OwnFeatures())
	small.openUp()
	big := dialPeer(t, "big", g.address, exchange.OwnFeatures())
	big.openUp()
	if answer := big.send(resources.TypeMeshService, "1", nil, servicesOf(t, "big", changes, 0)...); answer.GetErrorDetail() != nil {
		t.Fatal(answer.GetErrorDetail().GetMessage())
	}
	if n := count(s, resources.TypeMeshService); n < changes {
		t.Errorf("acknowledged with %d of %d", n, changes)
	}
	g.stop()
	s.queue.Stop()
	total := 0
	for i, at := range s.order {
		if at.by != "big" {
			continue
		}
		total += at.ops
		if at.ops > 300 {
			t.Errorf("others wait for %d changes of one zone", at.ops)
		}
		if total < changes && (i+2 >= len(s.order) || s.order[i+1].by == "big" || s.order[i+2].by == "big") {
			t.Errorf("after %d changes, the other zone and the user are not next: %v", total, s.order[i:min(i+3, len(s.order))])
		}
	}
	if total < changes {
		t.Errorf("%d changes, in %v", total, s.order)
	}
}

// TestTurnsGrowWhileNobodyElseWrites checks that a large zone whose list comes alone costs few writes.
func TestTurnsGrowWhileNobodyElseWrites(t *testing.T) {
	t.Parallel()
	s := newQueuedStore(t, func(*queuedStore, store.Batch) {})
	g := startGlobal(t, s)
	big := dialPeer(t, "big", g.address, exchange.OwnFeatures())
	big.openUp()
	if answer := big.send(resources.TypeMeshService, "1", nil, servicesOf(t, "big", 1500, 0)...); answer.GetErrorDetail() != nil {
		t.Fatal(answer.GetErrorDetail().GetMessage())
	}
	g.stop()
	s.queue.Stop()
	if len(s.order) > 4 || !slices.IsSortedFunc(s.order[:len(s.order)-1], func(a, b turn) int { return a.ops - b.ops }) {
		t.Errorf("1,500 changes took the turns %v", s.order)
	}
}

// TestStatusOfProxiesIsNoBatch has a zone report on a proxy again and again, which costs no write: its list that comes
// then is not taken for that of a zone which writes alone.
func TestStatusOfProxiesIsNoBatch(t *testing.T) {
	t.Parallel()
	s, status := newQueuedStore(t, func(*queuedStore, store.Batch) {}), store.NewMemory()
	g := startGlobal(t, s, func(c *GlobalConfig) { c.Status = status })
	big := dialPeer(t, "big", g.address, exchange.OwnFeatures())
	big.openUp()
	send := func(nonce string, typ resources.Type, items ...*discovery.Resource) {
		t.Helper()
		if answer := big.send(typ, nonce, nil, items...); answer.GetErrorDetail() != nil {
			t.Fatal(answer.GetErrorDetail().GetMessage())
		}
	}
	for i := range 12 {
		key := resources.Key{Type: resources.TypeDataplaneInsight, Mesh: "default", Name: "dp"}
		send(fmt.Sprint("i", i), key.Type, wireOf(t, "big", written(t, zoneHome("big"), key, fmt.Sprintf(`{"subscriptions":[{"id":"%d"}]}`, i))))
	}
	if n := status.Snapshot().Revision(); n != 12 {
		t.Fatalf("%d reports are stored", n)
	}
	send("s", resources.TypeMeshService, servicesOf(t, "big", 600, 0)...)
	g.stop()
	s.queue.Stop()
	if len(s.order) == 0 || s.order[0].ops > minBatch {
		t.Errorf("600 changes took the turns %v", s.order)
	}
}
