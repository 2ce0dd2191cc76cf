package kds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/lineage"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestWhatAnotherStoreWasAnsweredIsForgotten checks that the revisions of one store do not count for another, not even
// before the two are compared.
func TestWhatAnotherStoreWasAnsweredIsForgotten(t *testing.T) {
	t.Parallel()
	key, spec := permission("p")
	first, other, own := store.NewMemory(), store.NewMemory(), store.NewMemory()
	for i := range 20 {
		put(t, first, written(t, globalHome, key, spec, "step", fmt.Sprint(i)))
	}
	put(t, other, written(t, globalHome, key, spec, "step", "other"))
	service := resources.Key{Type: resources.TypeMeshService, Mesh: "default", Name: "backend"}
	put(t, own, written(t, zoneHome("zone-1"), service, `{"ports":[{"port":80}]}`))
	g := startGlobal(t, first, func(c *GlobalConfig) { c.Epoch = firstStore })
	var open atomic.Bool // which of the two the zone tries first is random
	then := startGlobal(t, other, func(c *GlobalConfig) {
		c.Epoch = otherStore
		c.Authenticate = func(context.Context) (string, Pass, error) {
			if !open.Load() {
				return "", nil, ErrNotAllowed
			}
			return "zone-1", nil, nil
		}
	})
	compare := make(chan struct{})
	z := startZone(t, "zone-1", g.address, own, func(c *ZoneConfig) {
		c.Others, c.Epochs = []string{then.address}, &notedEpoch{name: firstStore}
		c.Proxies = func(func(uint64) bool) ([]tracker.ProxyBehind, uint32) { return nil, 0 }
		c.Validate = func(r *resources.Resource) error {
			if r.Labels["step"] == "other" {
				<-compare
			}
			return nil
		}
	})
	release := sync.OnceFunc(func() { close(compare) })
	t.Cleanup(release)
	eventually(t, "the first to know what the zone has", func() bool {
		r := g.LastReport("zone-1")
		return r != nil && r.Applied[key.Type] >= 20 && z.Rollout(own.Snapshot().Get(service)).Zones.Acknowledged == 1
	})
	open.Store(true)
	g.stop()
	eventually(t, "a report to the other", func() bool { return then.LastReport("zone-1") != nil })
	if r := then.LastReport("zone-1"); r.Applied[key.Type] != 0 {
		t.Errorf("before it has looked at anything, the zone tells of revision %d, and the store is at %d",
			r.Applied[key.Type], other.Snapshot().Revision())
	}
	release()
	eventually(t, "the other to know what the zone has", func() bool {
		return then.LastReport("zone-1").Applied[key.Type] > 0 &&
			z.Rollout(own.Snapshot().Get(service)).Zones.Acknowledged == 1
	})
}

// TestAnotherStoreDeletesNothing checks that an unknown store causes no deletions, however few. The known store does,
// and one without an epoch is subject to the guard.
func TestAnotherStoreDeletesNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		epoch               string
		lacking, left, held int
	}{
		"another, one":  {otherStore, 1, 10, 1},
		"another, all":  {otherStore, 10, 10, 10},
		"another, none": {otherStore, 0, 10, 0},
		"the same":      {firstStore, 3, 7, 0},
		"not announced": {"", 3, 7, 0},
		"too long":      {strings.Repeat("x", lineage.MaxEpoch+1), 3, 7, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := reopen(t, tt.lacking, tt.epoch)
			if tt.held == 0 && tt.epoch == otherStore {
				eventually(t, "the store to be accepted", func() bool { return r.kept.now() == otherStore })
			}
			r.want(tt.left, tt.held, tt.held > 0)
		})
	}
}

// TestOlderContentIsTold checks a restored store that reverts later changes: that is no deletion and is not held. The
// zone reports it, also to the global, and still does once it has accepted the store.
func TestOlderContentIsTold(t *testing.T) {
	t.Parallel()
	r := reopen(t, 0, firstStore)
	if status := r.z.Status(""); status.Replaced != nil {
		t.Errorf("the store is the same, and replaced is %+v", status.Replaced)
	}
	r.part()
	older := r.all[3].Clone()
	_, spec := permission("older")
	older.Spec = written(t, globalHome, older.Key, spec).Spec
	r.above = store.NewMemory()
	put(t, r.above, r.all...)
	put(t, r.above, older)
	r.g = startGlobal(t, r.above, func(c *GlobalConfig) { c.Epoch = otherStore })
	r.z = startZone(t, "zone-1", r.g.address, r.own, func(c *ZoneConfig) {
		c.Epochs, c.Versions, c.Proxies = r.kept, r.known, func(func(uint64) bool) ([]tracker.ProxyBehind, uint32) { return nil, 0 }
	})
	eventually(t, "the store to be accepted", func() bool { return r.kept.now() == otherStore && r.z.Status("").NewStore == nil })
	status := r.z.Status("")
	if status.Replaced == nil || status.Replaced.Count != 1 || !slices.Equal(status.Replaced.Names,
		[]string{exchange.WireName(find(r.own, older.Type, "p3").Name, "default")}) {
		t.Errorf("replaced is %+v", status.Replaced)
	}
	eventually(t, "the global to know", func() bool {
		status, _ := r.g.Status("zone-1", "")
		return status.Replaced != nil && status.Replaced.Count == 1
	})
	put(t, r.above, r.all[3])
	eventually(t, "a change by a person", func() bool { return contains(find(r.own, older.Type, "p3"), "spiffe://d/p3") })
	if status := r.z.Status(""); status.Replaced.Count != 1 {
		t.Errorf("after a change replaced is %+v", status.Replaced)
	}
}

// TestStoreCatchesUp checks that a resource that comes back is no longer held. Once all are there, the store counts as
// known. A deliberate deletion meanwhile takes effect.
func TestStoreCatchesUp(t *testing.T) {
	t.Parallel()
	r := reopen(t, 3, otherStore)
	r.want(10, 3, true)
	put(t, r.above, r.all[0])
	eventually(t, "one that came back",
		func() bool { return typeOf(r.z.Status(""), r.all[0].Type, "toZone").Held.Count == 2 })
	remove(t, r.above, r.all[5].Key)
	eventually(t, "a removal by a person", func() bool { return find(r.own, r.all[5].Type, "p5") == nil })
	r.want(9, 2, true)
	r.part() // it persists over a restart
	r.meet(otherStore)
	r.compared()
	r.want(9, 2, true)
	put(t, r.above, r.all[1], r.all[2])
	eventually(t, "the store to be accepted", func() bool { return r.kept.now() == otherStore && r.z.Status("").NewStore == nil })
	r.want(9, 0, false)
	r.part()
	remove(t, r.above, r.all[1].Key)
	r.meet(otherStore)
	eventually(t, "an ordinary removal", func() bool { return count(r.own, r.all[0].Type) == 8 })
}

// TestOperatorAcceptsAnotherStore checks that an operator's acceptance makes the held deletions, and that the zone
// knows the store from then on. The zone reports both to the global.
func TestOperatorAcceptsAnotherStore(t *testing.T) {
	t.Parallel()
	r := reopen(t, 3, otherStore)
	if _, err := r.z.AcceptDeletes(t.Context(), resources.TypeMeshTimeout, ""); err != nil {
		t.Fatal(err)
	}
	r.want(10, 3, true)
	accepted, err := r.z.AcceptDeletes(t.Context(), "", "")
	if err != nil || len(accepted) != 1 || accepted[0].Count != 3 {
		t.Fatalf("accepted %+v, error %v", accepted, err)
	}
	r.want(7, 0, false)
	if r.kept.now() != otherStore {
		t.Errorf("the zone still knows the store %s", r.kept.now())
	}
}

// TestStoreThatCannotBeRemembered checks that a zone whose own store cannot save the epoch keeps holding, and
// tries again.
func TestStoreThatCannotBeRemembered(t *testing.T) {
	t.Parallel()
	r := reopen(t, 1, otherStore)
	r.kept.mu.Lock()
	r.kept.err = errors.New("the disk is full")
	r.kept.mu.Unlock()
	if _, err := r.z.AcceptDeletes(t.Context(), "", ""); err == nil {
		t.Error("no error")
	}
	if r.z.Status("").NewStore == nil || r.kept.now() != firstStore {
		t.Error("it was accepted all the same")
	}
}

func TestGlobalHearsOfAnotherStore(t *testing.T) {
	t.Parallel()
	r := reopen(t, 2, otherStore)
	r.part()
	r.g = startGlobal(t, r.above, func(c *GlobalConfig) { c.Epoch = otherStore })
	r.z = startZone(t, "zone-1", r.g.address, r.own, func(c *ZoneConfig) {
		c.Epochs, c.Proxies = r.kept, func(func(uint64) bool) ([]tracker.ProxyBehind, uint32) { return nil, 0 }
	})
	told := func() tracker.SyncStatus { status, _ := r.g.Status("zone-1", ""); return status }
	eventually(t, "the report", func() bool {
		status := told()
		return status.NewStore != nil && status.NewStore.Announced == otherStore && status.HeldByZone[r.all[0].Type] == 2
	})
	if _, err := r.z.AcceptDeletes(t.Context(), "", ""); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of it", func() bool { return told().NewStore == nil && told().HeldByZone == nil })
}

func TestEpochOfAHeader(t *testing.T) {
	t.Parallel()
	for want, header := range map[string]metadata.MD{
		"a": metadata.Pairs(metadataEpoch, "a"),
		"":  metadata.Pairs(metadataEpoch, "a", metadataEpoch, "b"),
	} {
		if got := epochOf(header); got != want {
			t.Errorf("%v: %q", header, got)
		}
	}
}
