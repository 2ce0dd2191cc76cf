package kds

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/lineage"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// notedEpoch is Epochs in memory.
type notedEpoch struct {
	mu   sync.Mutex
	name string       // guarded by mu
	err  error        // guarded by mu: what Accept returns
	seen lineage.Seen // guarded by mu
	// before is what was noted last; guarded by mu.
	before Before
}

func (n *notedEpoch) Before(context.Context) (Before, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.before), nil
}

// NoteBefore records at once, as See does.
func (n *notedEpoch) NoteBefore(_ context.Context, before Before) ([]store.Op, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.before = maps.Clone(before)
	return nil, nil
}

func (n *notedEpoch) Seen(context.Context) (lineage.Seen, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seen, nil
}

// See records at once, and needs no operation for it.
func (n *notedEpoch) See(_ context.Context, seen lineage.Seen) ([]store.Op, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen = seen
	return nil, nil
}

func (n *notedEpoch) Accepted(context.Context) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.name, nil
}

func (n *notedEpoch) Accept(_ context.Context, name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err == nil {
		n.name = name
	}
	return n.err
}

func (n *notedEpoch) now() string {
	name, _ := n.Accepted(context.Background())
	return name
}

// reopened is a zone with ten permissions of the global's first store, which then meets another store that has all but
// some.
type reopened struct {
	t     *testing.T
	kept  *notedEpoch
	own   store.Store
	all   []*resources.Resource
	above store.Store
	known *VersionFiles
	g     *testGlobal
	z     *testZone
}

const firstStore, otherStore = "first", "other"

func reopen(t *testing.T, lacking int, epoch string) *reopened {
	t.Helper()
	r := &reopened{t: t, kept: &notedEpoch{}, own: store.NewMemory(), above: store.NewMemory()}
	r.known = NewVersionFiles(t.TempDir(), testLog(), r.own)
	for i := range 10 {
		key, spec := permission(fmt.Sprintf("p%d", i))
		r.all = append(r.all, written(t, globalHome, key, spec))
	}
	put(t, r.above, r.all...)
	r.meet(firstStore)
	eventually(t, "ten permissions", func() bool { return count(r.own, r.all[0].Type) == 10 && r.kept.now() == firstStore })
	r.part()
	r.above = store.NewMemory()
	put(t, r.above, r.all[lacking:]...)
	r.meet(epoch)
	r.compared()
	return r
}

func (r *reopened) meet(epoch string) {
	r.t.Helper()
	r.g = startGlobal(r.t, r.above, func(c *GlobalConfig) { c.Epoch = epoch })
	r.z = startZone(r.t, "zone-1", r.g.address, r.own, func(c *ZoneConfig) { c.Epochs, c.Versions = r.kept, r.known })
}

func (r *reopened) part() {
	r.z.stop()
	r.g.stop()
}

// compared waits until the zone has compared every type; the last ones follow the permissions.
func (r *reopened) compared() {
	r.t.Helper()
	types := 0
	for _, d := range resources.Descriptors() {
		if exchange.GlobalToZone.Carries(d) {
			types++
		}
	}
	eventually(r.t, "every type compared", func() bool { return r.g.events.count(Acknowledged, "") >= types })
}

func (r *reopened) want(permissions, held int, strange bool) {
	r.t.Helper()
	if got := count(r.own, r.all[0].Type); got != permissions {
		r.t.Errorf("the zone has %d permissions, want %d", got, permissions)
	}
	status, now := r.z.Status(""), 0
	if h := typeOf(status, r.all[0].Type, "toZone").Held; h != nil {
		now = h.Count
	}
	if now != held || (status.NewStore != nil) != strange {
		r.t.Errorf("held are %d, want %d; the store is strange: %+v, want %v", now, held, status.NewStore, strange)
	}
}
