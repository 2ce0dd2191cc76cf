package kds

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/kds/exchange"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

func many(t *testing.T, s store.Store, prefix string, n int) []resources.Key {
	t.Helper()
	var rs []*resources.Resource
	var keys []resources.Key
	for i := range n {
		key, spec := permission(fmt.Sprintf("%s%03d", prefix, i))
		rs = append(rs, written(t, globalHome, key, spec))
		keys = append(keys, key)
	}
	put(t, s, rs...)
	return keys
}

func TestMessagesAreCut(t *testing.T) {
	t.Parallel()
	for size, features := range map[int]exchange.Features{
		2 << 10: exchange.OwnFeatures() &^ exchange.FeatureFrames &^ exchange.FeatureTraces,
		512:     exchange.OwnFeatures() &^ exchange.FeatureTraces,
	} {
		t.Run(fmt.Sprint(size), func(t *testing.T) { areCut(t, size, features) })
	}
}

func areCut(t *testing.T, size int, features exchange.Features) {
	g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.MaxMessageSize = size })
	keys := many(t, g.store, "a", 40)
	s := store.NewMemory()
	z := startZoneWith(t, "zone-1", g.address, s, features)
	eventually(t, "the list in parts", func() bool { return count(s, keys[0].Type) == 40 })
	// A message is counted after its content is visible.
	eventually(t, "ten messages", func() bool { return z.events.count(Received, keys[0].Type) >= 10 })
	more := many(t, g.store, "b", 40)
	eventually(t, "a change in parts", func() bool { return count(s, keys[0].Type) == 80 })
	remove(t, g.store, append(keys, more[:20]...)...)
	eventually(t, "removals", func() bool { return count(s, keys[0].Type) == 20 })
	z.stop()
	remove(t, g.store, more[20:25]...)
	many(t, g.store, "c", 30)
	startZoneWith(t, "zone-1", g.address, s, features)
	eventually(t, "a list in parts that also removes", func() bool {
		return count(s, keys[0].Type) == 45 && find(s, keys[0].Type, "b020") == nil && find(s, keys[0].Type, "c029") != nil
	})
}

// TestPlainPeersFirstListIsWhole checks that a plain peer, which takes the first response of a type as complete, gets
// it whole.
func TestPlainPeersFirstListIsWhole(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.MaxMessageSize = 2 << 10 })
	keys := many(t, g.store, "a", 40)
	p := dialPeer(t, "plain", g.address, plainFeatures)
	p.openDown(keys[0].Type)
	m := p.receive()
	if len(m.GetResources()) != 40 {
		t.Fatalf("the first list has %d", len(m.GetResources()))
	}
	p.ack(m)
	many(t, g.store, "b", 40)
	got := 0
	for got < 40 {
		m := p.receive()
		if got += len(m.GetResources()); len(m.GetResources()) == 40 {
			t.Fatal("a change was not cut")
		}
		p.ack(m)
	}
}

// TestComingAndGoingBetweenParts changes what was listed, and what was not yet, between two parts of a list.
func TestComingAndGoingBetweenParts(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory(), func(c *GlobalConfig) { c.MaxMessageSize = 1 << 10 })
	keys := many(t, g.store, "m", 20)
	p := dialPeer(t, "parts", g.address, exchange.OwnFeatures())
	p.openDown(keys[0].Type)
	have := map[string]bool{}
	take := func(m *discovery.DeltaDiscoveryResponse) {
		for _, r := range m.GetResources() {
			have[r.GetName()] = true
		}
		for _, name := range m.GetRemovedResources() {
			delete(have, name)
		}
	}
	m := p.receive()
	if said, ok := parseProgress(m.GetSystemVersionInfo()); !ok || !said.list || !said.more {
		t.Fatalf("the first part says %q", m.GetSystemVersionInfo())
	}
	early := many(t, g.store, "a", 2) // before the transfer's position
	late := many(t, g.store, "z", 2)  // behind it
	remove(t, g.store, keys[0], early[0], keys[19])
	// finish answers until nothing is outstanding; it deletes fleeting as soon as it was sent.
	finish := func(fleeting resources.Key) {
		name := ""
		if r := g.store.Snapshot().Get(fleeting); r != nil {
			name = exchange.WireName(exchange.HashedName(r), r.Mesh)
		}
		last := resources.Key{Type: fleeting.Type, Mesh: "default", Name: "zz-" + fleeting.Name}
		for sent := false; ; {
			take(m)
			if name != "" && have[name] {
				remove(t, g.store, fleeting)
				name = ""
			}
			if said, _ := parseProgress(m.GetSystemVersionInfo()); !said.more && !sent && name == "" {
				_, spec := permission("last")
				put(t, g.store, written(t, globalHome, last, spec))
				sent = true
			}
			p.ack(m)
			if have[exchange.WireName(exchange.HashedName(written(t, globalHome, last, `{}`)), "default")] {
				return
			}
			m = p.receive()
		}
	}
	check := func(when string) {
		t.Helper()
		want := map[string]bool{}
		for r := range g.store.Snapshot().List(store.Query{Type: keys[0].Type}) {
			want[exchange.WireName(exchange.HashedName(r), r.Mesh)] = true
		}
		if fmt.Sprint(have) != fmt.Sprint(want) {
			t.Errorf("%s the peer has\n%v\nwant\n%v", when, have, want)
		}
	}
	finish(late[0])
	check("after a list")
	many(t, g.store, "n", 20)
	m = p.receive()
	finish(many(t, g.store, "y", 2)[0])
	check("after a change")
}

func TestPastTheWindow(t *testing.T) {
	t.Parallel()
	for _, features := range []exchange.Features{plainFeatures, exchange.OwnFeatures()} {
		g := startGlobal(t, store.NewMemoryWith(store.ViewConfig{WindowCommits: 8, WindowChanges: 8}))
		keys := many(t, g.store, "a", 3)
		p := dialPeer(t, "behind", g.address, features)
		p.openDown(keys[0].Type)
		m := p.receive()
		remove(t, g.store, keys[0])
		for i := range 40 {
			key, _ := permission("churn")
			put(t, g.store, written(t, globalHome, key,
				fmt.Sprintf(`{"default":{"allow":[{"sni":{"type":"Exact","value":"a%d"}}]}}`, i)))
		}
		p.ack(m)
		next, err := openedFrames(p.down.Recv)()
		if features == plainFeatures {
			if grpcstatus.Code(err) != codes.Aborted || !strings.Contains(err.Error(), "open a new stream") {
				t.Errorf("a plain peer got %v, %v", next, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		said, _ := parseProgress(next.GetSystemVersionInfo())
		if !said.list || len(next.GetResources()) != 3 {
			t.Errorf("got %q with %d resources", next.GetSystemVersionInfo(), len(next.GetResources()))
		}
	}
}

// TestTooBigForOneMessage checks that a resource of an older version's store that no peer accepts is reported by name.
func TestTooBigForOneMessage(t *testing.T) {
	t.Parallel()
	key, _ := permission("big")
	big := written(t, globalHome, key, `{"default":{"allow":[{"sni":{"type":"Exact","value":"`+strings.Repeat("a",
		MaxMessageSize)+`"}}]}}`)
	memory := store.NewMemory()
	if err := memory.Load(func(put func(*resources.Resource) error) (uint64, error) { return 1, put(big) }); err != nil {
		t.Fatal(err)
	}
	g := startGlobal(t, memory)
	small, smallSpec := permission("small")
	put(t, g.store, written(t, globalHome, small, smallSpec))
	s := store.NewMemory()
	startZone(t, "zone-1", g.address, s)
	eventually(t, "the small one", func() bool { return find(s, small.Type, "small") != nil })
	if refusals := g.Refusals("zone-1"); len(refusals) != 1 || !strings.HasPrefix(refusals[0].Name, "big-") ||
		refusals[0].ByPeer {
		t.Errorf("refusals are %+v", refusals)
	}
}

// TestTooLargeForTheStore checks that a resource that the receiver's store can never hold is refused by name, once, and
// delays nothing after it.
func TestTooLargeForTheStore(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, store.NewMemory())
	key, spec := permission("ordinary")
	big := written(t, zoneHome("zone-1"), key, `{"default":{"allow":[{"sni":{"type":"Exact","value":"`+
		strings.Repeat("a", store.MaxResourceBytes)+`"}}]}}`)
	big.Name, big.Labels[resources.LabelDisplayName] = "big", "big"
	s := store.NewMemory()
	if err := s.Load(func(put func(*resources.Resource) error) (uint64, error) { return 1, put(big) }); err != nil {
		t.Fatal(err)
	}
	startZone(t, "zone-1", g.address, s)
	eventually(t, "the global has refused it", func() bool { return len(g.Refusals("zone-1")) == 1 })
	if r := g.Refusals("zone-1")[0]; !strings.HasPrefix(r.Name, "big-") || !strings.Contains(r.Reason, "split it") {
		t.Errorf("refused: %+v", r)
	}
	put(t, s, written(t, zoneHome("zone-1"), key, spec))
	eventually(t, "what was written after it", func() bool { return find(g.store, key.Type, "ordinary") != nil })
}

// small is a store that holds less than others, as an etcd that takes small requests only.
type small struct {
	store.Store
	bytes int
}

func (s small) Apply(ctx context.Context, b store.Batch) (*store.Commit, error) {
	for _, op := range b.Ops {
		if op.Put != nil && len(op.Put.Spec.JSON()) > s.bytes {
			return nil, &store.TooLargeError{Key: op.Put.Key, Bytes: len(op.Put.Spec.JSON())}
		}
	}
	return s.Store.Apply(ctx, b)
}

// TestTooLargeForThisStore checks the same of what any other server could store: it is refused by name, and what comes in
// the same message and later is stored.
func TestTooLargeForThisStore(t *testing.T) {
	t.Parallel()
	g := startGlobal(t, small{store.NewMemory(), 2000})
	key, spec := permission("ordinary")
	key.Name = "big"
	s := store.NewMemory()
	put(t, s, written(t, zoneHome("zone-1"), key, `{"default":{"allow":[{"sni":{"type":"Exact","value":"`+
		strings.Repeat("a", 3000)+`"}}]}}`))
	key.Name = "beside"
	put(t, s, written(t, zoneHome("zone-1"), key, spec))
	startZone(t, "zone-1", g.address, s)
	eventually(t, "the global has refused it", func() bool { return len(g.Refusals("zone-1")) == 1 })
	if r := g.Refusals("zone-1")[0]; !strings.HasPrefix(r.Name, "big-") || !strings.Contains(r.Reason, "split it") {
		t.Errorf("refused: %+v", r)
	}
	eventually(t, "what came with it", func() bool { return find(g.store, key.Type, "beside") != nil })
	key.Name = "later"
	put(t, s, written(t, zoneHome("zone-1"), key, spec))
	eventually(t, "what was written after it", func() bool { return find(g.store, key.Type, "later") != nil })
}

// TestLargeFromBeforeTheLimit checks that what a global has had since before the limit goes to every zone, also to one
// that has nothing yet.
func TestLargeFromBeforeTheLimit(t *testing.T) {
	t.Parallel()
	old := store.NewMemory()
	key, _ := permission("big")
	big := written(t, globalHome, key, `{"default":{"deny":[{"sni":{"type":"Exact","value":"`+strings.Repeat("a",
		store.MaxResourceBytes)+`"}}]}}`)
	if err := old.Load(func(put func(*resources.Resource) error) (uint64, error) { return 1, put(big) }); err != nil {
		t.Fatal(err)
	}
	g := startGlobal(t, old)
	s := store.NewMemory()
	startZone(t, "zone-1", g.address, s)
	eventually(t, "the zone has it", func() bool { return find(s, key.Type, "big") != nil })
	if refusals := g.Refusals("zone-1"); len(refusals) > 0 {
		t.Errorf("refused: %+v", refusals)
	}
}
