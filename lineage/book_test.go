package lineage

import (
	"log/slog"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
	"github.com/causeway-mesh/causeway/secrets"
)

// started starts a server on a store.
func started(t *testing.T, s store.Store, box *secrets.Box) *Book {
	t.Helper()
	b, err := Open(t.Context(), s, secrets.NewKeeper(s, box), false)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func announced(t *testing.T, b *Book, seen Seen) (name string, now Seen, renamed bool) {
	t.Helper()
	name, now, renamed, err := b.Announce(t.Context(), seen)
	if err != nil {
		t.Fatal(err)
	}
	return name, now, renamed
}

// copied returns a copy of a store, at its revision.
func copied(t *testing.T, from store.Store) store.Store {
	t.Helper()
	to := store.NewMemory()
	snapshot := from.Snapshot()
	err := to.Load(func(put func(*resources.Resource) error) (uint64, error) {
		for r := range store.All(snapshot) {
			if err := put(r.Clone()); err != nil {
				return 0, err
			}
		}
		return snapshot.Revision(), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// TestStoreThatWentBackIsRenamed checks that a store keeps its name over restarts, gets another after a rollback to
// before what the peer has seen, however far it has come since, and keeps that one.
func TestStoreThatWentBackIsRenamed(t *testing.T) {
	t.Parallel()
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	write := func(s store.Store, name string) {
		storetest.Apply(t, s, storetest.Put(storetest.Resource(storetest.Key(name), 1, nil)))
	}
	s := store.NewMemory()
	write(s, "a")
	name, seen, renamed := announced(t, started(t, s, box), Seen{})
	if name == "" || seen.Word == "" || renamed {
		t.Fatalf("a new store is called %q at %s, renamed: %v", name, seen, renamed)
	}
	old := copied(t, s)
	write(s, "b")
	seen.Most = s.Snapshot().Revision()
	for range 2 {
		if again, _, renamed := announced(t, started(t, s, box), seen); again != name || renamed {
			t.Errorf("after a restart %q is called %q, renamed: %v", name, again, renamed)
		}
	}
	b := started(t, old, box)
	for i := range 5 {
		write(old, string(rune('m'+i)))
	}
	other, now, renamed := announced(t, b, seen)
	if other == name || !renamed {
		t.Errorf("put back, the store is called %q, and was %q, renamed: %v", other, name, renamed)
	}
	for range 2 { // the peer has accepted it
		again, _, renamed := announced(t, started(t, old, box), now)
		if again != other || renamed {
			t.Errorf("then %q is called %q, renamed: %v", other, again, renamed)
		}
	}
}
