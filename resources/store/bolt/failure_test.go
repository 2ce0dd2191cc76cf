package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"github.com/causeway-mesh/causeway/place"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

var errDisk = errors.New("input/output error")

// failing is a disk that fails the next writes: before they begin, or after they are visible in the file, as when the
// last sync fails.
type failing struct {
	left    atomic.Int64
	visible bool
	// inFile, if set, is called when a failed write is in the file.
	inFile func()
}

func (f *failing) commit(tx *bbolt.Tx) error {
	if f.left.Add(-1) < 0 {
		return tx.Commit()
	}
	if f.visible {
		if err := tx.Commit(); err != nil {
			return err
		}
		if f.inFile != nil {
			f.inFile()
		}
	}
	return errDisk
}

func TestFailedWrite(t *testing.T) {
	t.Parallel()
	for _, visible := range []bool{false, true} {
		for _, failures := range []int64{1, 2, 3, 4} {
			t.Run(fmt.Sprintf("visible %t, %d times", visible, failures), func(t *testing.T) {
				testFailedWrite(t, &failing{visible: visible}, failures)
			})
		}
	}
}

func testFailedWrite(t *testing.T, disk *failing, failures int64) {
	s := open(t, Config{Commit: disk.commit})
	disk.left.Store(0)
	storetest.Apply(t, s, store.Batch{Ops: []store.Op{{Put: kilobyte(1, 1)}, {Put: kilobyte(2, 1)}}})
	before := s.Snapshot()
	_, next := s.Changed()

	disk.left.Store(failures)
	bad := store.Batch{Ops: []store.Op{{Put: kilobyte(1, 2)}, {Delete: kilobyte(2, 0).Key}, {Put: kilobyte(3, 2)}}}
	for disk.left.Load() > 0 {
		if _, err := s.Apply(context.Background(), bad); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, errDisk) {
			t.Fatalf("got %v, want ErrUnavailable and the disk's error", err)
		}
	}
	unseen(t, s, before, next)

	good := storetest.Apply(t, s, storetest.Put(kilobyte(4, 1)))
	if good.Revision <= before.Revision()+1 {
		t.Errorf("revision %d of the failed write was given out again", good.Revision)
	}
	if commits, ok := s.Changes(before.Revision()); !ok || len(commits) != 1 || len(commits[0].Changes) != 1 {
		t.Errorf("the changelog has something of the failed write")
	}
	asIfKilled(t, s)
	reopened(t, s)
}

// TestHealthAfterAFailedWrite checks that a store says that its last write failed until the disk takes one again, which it
// finds out without a writer.
func TestHealthAfterAFailedWrite(t *testing.T) {
	t.Parallel()
	disk := &failing{}
	s := open(t, Config{Commit: disk.commit})
	if err := s.Healthy(); err != nil {
		t.Errorf("before: %v", err)
	}
	const many = 1 << 30
	disk.left.Store(many)
	if _, err := s.Apply(t.Context(), storetest.Put(kilobyte(1, 1))); !errors.Is(err, errDisk) {
		t.Fatalf("got %v, want the disk's error", err)
	}
	before := disk.left.Load()
	waitFor(t, "three more attempts", func() bool {
		if err := s.Healthy(); !errors.Is(err, errDisk) || !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("while the disk refuses: %v", err)
		}
		return disk.left.Load() <= before-3
	})
	disk.left.Store(0)
	waitFor(t, "the store to be healthy", func() bool { return s.Healthy() == nil })
}

// TestKeptOfAFailedWriteIsTakenBack: what was kept of a write, before the disk refused it, is what the view has again.
func TestKeptOfAFailedWriteIsTakenBack(t *testing.T) {
	t.Parallel()
	disk, kept, revision := &failing{}, map[resources.Key]*resources.Resource{}, uint64(0)
	s := open(t, Config{Commit: disk.commit, Keep: func(at uint64, changes map[resources.Key]*resources.Resource) error {
		revision = at
		for key, r := range changes {
			if kept[key] = r; r == nil {
				delete(kept, key)
			}
		}
		return nil
	}})
	disk.left.Store(0)
	storetest.Apply(t, s, store.Batch{Ops: []store.Op{{Put: kilobyte(1, 1)}, {Put: kilobyte(2, 1)}}})
	disk.left.Store(1)
	bad := store.Batch{Ops: []store.Op{{Put: kilobyte(1, 2)}, {Delete: kilobyte(2, 0).Key}, {Put: kilobyte(3, 2)}}}
	if _, err := s.Apply(t.Context(), bad); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("got %v, want ErrUnavailable", err)
	}
	if len(kept) != 2 || revision != 2 {
		t.Errorf("%d resources are kept at revision %d, want 2 at 2", len(kept), revision)
	}
	for key, r := range kept {
		if have := s.Snapshot().Get(key); have == nil || !have.SameContent(r) {
			t.Errorf("%s is kept as it is not", key)
		}
	}
}

// asIfKilled opens a copy of the current file, and checks that it holds the same as the view.
func asIfKilled(t *testing.T, s *Store) {
	t.Helper()
	now, err := os.ReadFile(s.file.path)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(path, now, 0o600); err != nil {
		t.Fatal(err)
	}
	storetest.SameState(t, open(t, Config{Path: path}).Snapshot(), s.Snapshot())
}

// unseen fails the test if a reader sees anything but the previous state.
func unseen(t *testing.T, s *Store, before store.Snapshot, next <-chan struct{}) {
	t.Helper()
	storetest.SameState(t, s.Snapshot(), before)
	if revision, _ := s.Changed(); revision != before.Revision() {
		t.Errorf("at revision %d, want %d", revision, before.Revision())
	}
	select {
	case <-next:
		t.Error("a failed write woke the watchers")
	default:
	}
	if commits, ok := s.Changes(before.Revision()); !ok || len(commits) != 0 {
		t.Error("a failed write is in the changelog")
	}
}

// reopened closes the store and checks that its file holds the same as the view.
func reopened(t *testing.T, s *Store) *Store {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, Config{Path: s.file.path})
	storetest.SameState(t, again.Snapshot(), s.Snapshot())
	if again.Snapshot().Revision() < s.Snapshot().Revision() {
		t.Errorf("reopened at revision %d, was at %d", again.Snapshot().Revision(), s.Snapshot().Revision())
	}
	return again
}

// TestUndoing checks the file: the failed write is there, and then, while failures continue, it is not.
func TestUndoing(t *testing.T) {
	t.Parallel()
	disk := &failing{visible: true}
	s := open(t, Config{Commit: disk.commit})
	r := kilobyte(1, 1)
	var there []bool
	disk.inFile = func() {
		err := s.file.db.View(func(tx *bbolt.Tx) error {
			there = append(there, tx.Bucket(resourcesBucket).Get(store.EncodeKey(r.Key)) != nil)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	disk.left.Store(2)
	if _, err := s.Apply(context.Background(), storetest.Put(r)); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("got %v, want ErrUnavailable", err)
	}
	if !slices.Equal(there, []bool{true, false}) {
		t.Fatalf("in the file after each failure: %v, want true and then false", there)
	}
	// Closing settles the doubt, and the revision stays used.
	again := reopened(t, s)
	if c := storetest.Apply(t, again, storetest.Put(r)); c.Revision != 2 {
		t.Errorf("got revision %d, want 2, after the failed write's", c.Revision)
	}
}

func TestDoubtIsBounded(t *testing.T) {
	t.Parallel()
	disk := &failing{}
	s := open(t, Config{Commit: disk.commit})
	disk.left.Store(1 << 30)
	for i := range 20 {
		if _, err := s.Apply(context.Background(), storetest.Put(kilobyte(i, 1))); !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("got %v, want ErrUnavailable", err)
		}
	}
	if n := len(s.doubt.keys); n != 1 {
		t.Errorf("%d keys are in doubt, want 1", n)
	}
	disk.left.Store(0)
	reopened(t, s)
}

func TestCloseReportsDoubt(t *testing.T) {
	t.Parallel()
	disk := &failing{}
	s := open(t, Config{Commit: disk.commit})
	disk.left.Store(1 << 30)
	if _, err := s.Apply(context.Background(), storetest.Put(kilobyte(1, 1))); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("got %v, want ErrUnavailable", err)
	}
	if err := s.Close(); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}

// TestDiskThatHangs checks that a store whose disk neither accepts nor refuses a write reports it after a while, serves
// readers, and is healthy again once the write completes.
func TestDiskThatHangs(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/store.db"
	synctest.Test(t, func(t *testing.T) {
		goes := make(chan struct{})
		var held atomic.Bool
		s, err := Open(t.Context(), Config{Path: path, Commit: func(tx *bbolt.Tx) error {
			if held.Load() {
				<-goes
			}
			return tx.Commit()
		}})
		if err != nil {
			t.Fatal(err)
		}
		held.Store(true)
		answer := make(chan error, 1)
		go func() {
			_, err := s.Apply(t.Context(), storetest.Put(kilobyte(1, 1)))
			answer <- err
		}()
		synctest.Wait()
		if err := s.Healthy(); err != nil {
			t.Errorf("at once: %v", err)
		}
		time.Sleep(place.DiskPatience)
		if err := s.Healthy(); !errors.Is(err, place.ErrHangs) || !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("after %s: %v", place.DiskPatience, err)
		}
		close(goes)
		if err := <-answer; err != nil {
			t.Error(err)
		}
		if err := s.Healthy(); err != nil {
			t.Errorf("when the disk goes on: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
