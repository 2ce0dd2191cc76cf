package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

// twoFormats returns the readers of a made-up newer program: it marks what it reads of format 1, so that the reader is
// visible.
func twoFormats() []entryReader {
	return []entryReader{func(key, value []byte) (*resources.Resource, error) {
		r, err := store.DecodeEntry(key, value)
		if err == nil {
			r.Labels["migrated"] = "yes"
		}
		return r, err
	}, store.DecodeEntry}
}

// aged returns a store of format 1 with a few resources, as an open server shows it, and its content in the next
// format.
func aged(t *testing.T, c Config) (old *Store, want []*resources.Resource) {
	t.Helper()
	old = open(t, c)
	for i := range 7 {
		storetest.Apply(t, old, storetest.Put(storetest.Resource(storetest.Key(fmt.Sprint("r", i)), i, nil)))
	}
	for _, r := range all(old) {
		r = r.Clone()
		r.Labels["migrated"] = "yes"
		want = append(want, r)
	}
	return old, want
}

// newer opens the store by the newer program.
func newer(t *testing.T, c Config) (*Store, error) {
	t.Helper()
	c.Program, c.Log = "v9.8.7", quiet()
	s, err := openWith(context.Background(), c, twoFormats())
	if err == nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

// keysBelow lists the keys of a prefix.
func keysBelow(t *testing.T, s *Store, prefix string) []string {
	t.Helper()
	r, err := s.client.Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, kv := range r.Kvs {
		out = append(out, string(kv.Key))
	}
	return out
}

// TestOneOfSeveralMigrates opens a store in several servers of a newer program at once. One makes a backup and
// migrates, all show the same; the older server shows what it had, and can no longer write.
func TestOneOfSeveralMigrates(t *testing.T) {
	t.Parallel()
	c := Config{Endpoints: etcdtest.Start(t, 1).Endpoints(), Prefix: "/migrated", MaxOps: 2}
	old, want := aged(t, c)
	before := all(old)
	var mu sync.Mutex
	backups := 0
	c.Backup = func(format int, revision uint64, rs []*resources.Resource) error {
		mu.Lock()
		defer mu.Unlock()
		backups++
		if wrong := storetest.Missing(rs, want); format != 1 || revision != 7 || wrong != "" {
			t.Errorf("backup of format %d at %d:\n%s", format, revision, wrong)
		}
		return nil
	}
	stores := make([]*Store, 3)
	var wg sync.WaitGroup
	for i := range stores {
		wg.Go(func() {
			var err error
			if stores[i], err = newer(t, c); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	for _, s := range stores {
		if wrong := storetest.Missing(all(s), want); wrong != "" || s.Snapshot().Revision() != 7 {
			t.Errorf("at %d:\n%s", s.Snapshot().Revision(), wrong)
		}
	}
	if backups != 1 {
		t.Errorf("%d backups", backups)
	}
	if left := keysBelow(t, old, "/migrated/r/"); len(left) > 0 {
		t.Errorf("of the older format there is still %q", left)
	}
	storetest.Apply(t, stores[0], storetest.Put(storetest.Resource(storetest.Key("after"), 1, nil)))
	agree(t, stores...)

	eventually(t, "the older server knows", func() bool { return errors.Is(old.Healthy(), ErrFormat) })
	_, err := old.Apply(t.Context(), storetest.Put(storetest.Resource(storetest.Key("late"), 1, nil)))
	if !errors.Is(err, ErrFormat) || !errors.Is(err, store.ErrUnavailable) ||
		!strings.Contains(err.Error(), `use version "v9.8.7"`) {
		t.Errorf("the older server's write: %v", err)
	}
	if wrong := storetest.Missing(all(old), before); wrong != "" {
		t.Errorf("the older server's view changed:\n%s", wrong)
	}
	if left := keysBelow(t, old, "/migrated/r/"); len(left) > 0 {
		t.Errorf("the older server wrote %q", left)
	}
	if _, err := Open(t.Context(), Config{Endpoints: c.Endpoints, Prefix: c.Prefix, Log: quiet()}); !errors.Is(err,
		ErrFormat) {
		t.Errorf("an older program opens it: %v", err)
	}
}

// TestWritesDuringAMigration checks that writes of older servers during a migration are either there afterwards, or
// refused.
func TestWritesDuringAMigration(t *testing.T) {
	t.Parallel()
	c := Config{Endpoints: etcdtest.Start(t, 1).Endpoints(), Prefix: "/written", MaxOps: 2, Timeout: time.Second,
		WriterLease: time.Second}
	old, _ := aged(t, c)
	stop := make(chan struct{})
	written := make(chan ledger, 1)
	go func() { written <- writeUntil(stop, old, "old") }()
	eventually(t, "the older server writes", func() bool { return old.Snapshot().Revision() > 20 })
	c.Backup = func(int, uint64, []*resources.Resource) error { return nil }
	s, err := newer(t, c)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the older server knows", func() bool { return errors.Is(old.Healthy(), ErrFormat) })
	close(stop)
	l := <-written
	l.check(t, s)
}

// TestMigrationThatDied checks that what a server left behind that was killed in the middle is removed once its lease
// has ended, and that the next one migrates the store.
func TestMigrationThatDied(t *testing.T) {
	t.Parallel()
	c := Config{Endpoints: etcdtest.Start(t, 1).Endpoints(), Prefix: "/died"}
	old, want := aged(t, c)
	lease, err := old.client.Grant(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	_, err = old.client.Txn(t.Context()).Then(
		clientv3.OpPut(old.keys.writer(), "dead", clientv3.WithLease(lease.ID)),
		clientv3.OpPut(old.keys.of(2).resources()+"MeshTimeout\x00default\x00\x00orphan", "half"),
	).Commit()
	if err != nil {
		t.Fatal(err)
	}
	c.Backup = func(int, uint64, []*resources.Resource) error { return nil }
	s, err := newer(t, c)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := storetest.Missing(all(s), want); wrong != "" {
		t.Error(wrong)
	}
	if got := keysBelow(t, s, s.keys.resources()); len(got) != len(want) {
		t.Errorf("there is %q", got)
	}
}

// TestMigrationWithoutABackup checks that no store is migrated without a backup.
func TestMigrationWithoutABackup(t *testing.T) {
	t.Parallel()
	c := Config{Endpoints: etcdtest.Start(t, 1).Endpoints(), Prefix: "/kept"}
	old, _ := aged(t, c)
	before := keysBelow(t, old, "/kept/")
	if _, err := newer(t, c); !errors.Is(err, ErrOldFormat) {
		t.Errorf("without a place for it: %v", err)
	}
	full := errors.New("the disk is full")
	c.Backup = func(int, uint64, []*resources.Resource) error { return full }
	if _, err := newer(t, c); !errors.Is(err, full) || !strings.Contains(err.Error(), "from format 1 to 2") {
		t.Errorf("on a full disk: %v", err)
	}
	if now := keysBelow(t, old, "/kept/"); fmt.Sprint(now) != fmt.Sprint(before) {
		t.Errorf("there is %q, and was %q", now, before)
	}
	storetest.Apply(t, old, storetest.Put(storetest.Resource(storetest.Key("after"), 1, nil)))
}
