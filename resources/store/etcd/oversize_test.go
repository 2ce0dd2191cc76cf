package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

func sized(t *testing.T, name string, bytes int) *resources.Resource {
	t.Helper()
	r := storetest.Resource(storetest.Key(name), 1, nil)
	spec, err := resources.NewSpec(r.Type, fmt.Appendf(nil, `{"content":%q}`, strings.Repeat("x", bytes)))
	if err != nil {
		t.Fatal(err)
	}
	r.Spec = spec
	return r
}

// TestTooLargeIsRefusedAlone checks that a resource that etcd never accepts is refused by name, permanently; what is
// written beside it is not.
func TestTooLargeIsRefusedAlone(t *testing.T) {
	t.Parallel()
	c := etcdtest.StartLimited(t, 64<<10) // a cluster that accepts requests of 64 KiB
	s := several(t, 1, Config{Endpoints: c.Endpoints()})[0]
	large := sized(t, "large", 200<<10)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			if _, err := s.Apply(context.Background(),
				storetest.Put(storetest.Resource(storetest.Key(fmt.Sprint("r", i)), 1, nil))); err != nil {
				t.Errorf("a neighbour: %v", err)
			}
		})
		wg.Go(func() {
			_, err := s.Apply(context.Background(), storetest.Put(large))
			var refused *store.TooLargeError
			if !errors.As(err, &refused) || refused.Key != large.Key || errors.Is(err, store.ErrUnavailable) {
				t.Errorf("got %v, want %s refused for its size", err, large.Key)
			}
		})
	}
	wg.Wait()
	if n := len(all(s)); n != 40 {
		t.Errorf("%d resources, want 40", n)
	}
}

// TestLargeBatchUnderASmallLimit checks that a batch that etcd refuses in the planned parts is written whole in smaller
// ones, and that one with a resource that never fits leaves nothing behind.
func TestLargeBatchUnderASmallLimit(t *testing.T) {
	t.Parallel()
	c := etcdtest.StartLimited(t, 64<<10)
	stores := several(t, 2, Config{Endpoints: c.Endpoints()})
	var b store.Batch
	for i := range 30 {
		b.Ops = append(b.Ops, store.Op{Put: sized(t, fmt.Sprint("r", i), 10<<10)})
	}
	storetest.Apply(t, stores[0], b)
	agree(t, stores...)
	if n := len(all(stores[1])); n != 30 {
		t.Fatalf("%d resources, want 30", n)
	}
	for i := range b.Ops {
		b.Ops[i].Put = sized(t, fmt.Sprint("s", i), 10<<10)
	}
	b.Ops = append(b.Ops, store.Op{Put: sized(t, "large", 200<<10)})
	var refused *store.TooLargeError
	if _, err := stores[0].Apply(t.Context(), b); !errors.As(err, &refused) || refused.Key.Name != "large" {
		t.Errorf("got %v, want large refused for its size", err)
	}
	storetest.Apply(t, stores[0], storetest.Put(sized(t, "after", 1)))
	agree(t, stores...)
	if n := len(all(stores[1])); n != 31 {
		t.Errorf("%d resources, want 31: a refused batch left something", n)
	}
}

// TestTooLargeForEveryStore checks that a resource over store.MaxResourceBytes is refused without a request.
func TestTooLargeForEveryStore(t *testing.T) {
	t.Parallel()
	s := several(t, 1, Config{Endpoints: etcdtest.Start(t, 1).Endpoints()})[0]
	var refused *store.TooLargeError
	if _, err := s.Apply(t.Context(), storetest.Put(sized(t, "large", 1600<<10))); !errors.As(err, &refused) ||
		refused.Limit != store.MaxResourceBytes {
		t.Errorf("got %v", err)
	}
	if _, err := s.Apply(t.Context(), storetest.Put(sized(t, "fits", 1000<<10))); err != nil {
		t.Errorf("a resource of 1,000 KiB: %v", err)
	}
}

// TestNoRoom checks that a cluster without room under its quota is not healthy, although it answers.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	c := etcdtest.StartQuota(t, 4<<20)
	s := several(t, 1, Config{Endpoints: c.Endpoints()})[0]
	var err error
	for i := 0; err == nil && i < 50; i++ {
		_, err = s.Apply(t.Context(), storetest.Put(sized(t, fmt.Sprint("r", i%2), 500<<10+i)))
	}
	if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUncertain) {
		t.Fatalf("got %v", err)
	}
	if err := s.Healthy(); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "space") {
		t.Errorf("the server says that it is well: %v", err)
	}
	client := clientOf(t, c)
	now, err := client.Get(t.Context(), "any")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(t.Context(), now.Header.Revision); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Defragment(t.Context(), c.Endpoints()[0]); err != nil {
		t.Fatal(err)
	}
	alarms, err := client.AlarmList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range alarms.Alarms {
		if _, err := client.AlarmDisarm(t.Context(), (*clientv3.AlarmMember)(a)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "there is room again", func() bool { return s.Healthy() == nil })
	storetest.Apply(t, s, storetest.Put(sized(t, "r0", 10)))
}
