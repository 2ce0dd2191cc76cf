package bolt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/causeway-mesh/causeway/place"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

// refusedForItsPlace fails the test unless the batch is refused because the file is elsewhere.
func refusedForItsPlace(t *testing.T, s *Store, b store.Batch) error {
	t.Helper()
	_, err := s.Apply(context.Background(), b)
	if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, place.ErrMoved) {
		t.Fatalf("got %v, want ErrUnavailable because the file moved", err)
	}
	return err
}

// TestFileThatMoves checks that no batch is acknowledged, not even one that changes nothing, while the next start would
// not find the file. Once the file is back, the store continues.
func TestFileThatMoves(t *testing.T) {
	t.Parallel()
	for what, move := range map[string]func(t *testing.T, path string) (back func()){
		"the file":   func(t *testing.T, path string) func() { return renamed(t, path) },
		"its folder": func(t *testing.T, path string) func() { return renamed(t, filepath.Dir(path)) },
		"its folder, and another in its place": func(t *testing.T, path string) func() {
			back := renamed(t, filepath.Dir(path))
			must(t, os.Mkdir(filepath.Dir(path), 0o700))
			return func() { must(t, os.Remove(filepath.Dir(path))); back() }
		},
		"the file, and a copy in its place": func(t *testing.T, path string) func() {
			raw, err := os.ReadFile(path)
			must(t, err)
			back := renamed(t, path)
			must(t, os.WriteFile(path, raw, 0o600))
			return back
		},
	} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data", "store.db")
			s := open(t, Config{Path: path})
			storetest.Apply(t, s, storetest.Put(kilobyte(1, 1)))
			back := move(t, path)
			_ = refusedForItsPlace(t, s, storetest.Put(kilobyte(2, 1)))
			_ = refusedForItsPlace(t, s, storetest.Put(kilobyte(1, 1))) // changes nothing
			if err := s.Healthy(); !errors.Is(err, place.ErrMoved) {
				t.Errorf("healthy: %v", err)
			}
			back()
			must(t, s.Healthy())
			storetest.Apply(t, s, storetest.Put(kilobyte(3, 1)))
			reopened(t, s)
		})
	}
}

// renamed moves a file or folder away, and returns a function that moves it back.
func renamed(t *testing.T, path string) (back func()) {
	t.Helper()
	must(t, os.Rename(path, path+".away"))
	return func() { must(t, os.Rename(path+".away", path)) }
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestFileThatMovesMeanwhile moves the file during a write. The file has the write, but the next start may not: the
// writer learns neither that it is stored nor that it is not. Once the file is back, it holds what readers saw.
func TestFileThatMovesMeanwhile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data", "store.db")
	var back func()
	moving := false
	s := open(t, Config{Path: path, Commit: func(tx *bbolt.Tx) error {
		err := tx.Commit()
		if moving {
			moving = false
			back = renamed(t, filepath.Dir(path))
		}
		return err
	}})
	storetest.Apply(t, s, storetest.Put(kilobyte(1, 1)))
	before, next := s.Snapshot(), func() <-chan struct{} { _, next := s.Changed(); return next }()
	moving = true
	if err := refusedForItsPlace(t, s, storetest.Put(kilobyte(2, 1))); !errors.Is(err, store.ErrUncertain) {
		t.Errorf("got %v, want ErrUncertain", err)
	}
	unseen(t, s, before, next)
	back()
	storetest.Apply(t, s, storetest.Put(kilobyte(3, 1)))
	reopened(t, s)
}
