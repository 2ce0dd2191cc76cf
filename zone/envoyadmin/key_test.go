package envoyadmin

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
)

// full is a store that takes no writes, as on a full disk.
type full struct{ store.Store }

func (full) Apply(context.Context, store.Batch) (*store.Commit, error) {
	return nil, errors.New("the disk is full")
}

func newBox(t *testing.T) *secrets.Box {
	t.Helper()
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func pinOf(t *testing.T, s store.Store, box *secrets.Box) string {
	t.Helper()
	key, err := OpenKey(t.Context(), secrets.NewKeeper(s, box), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return key.Pin
}

// TestKeyThatCannotBeKept: a zone that cannot store its key, or not read it, starts nevertheless. All of its servers
// have the one that is stored.
func TestKeyThatCannotBeKept(t *testing.T) {
	s, box := store.NewMemory(), newBox(t)
	if pinOf(t, full{s}, box) == "" {
		t.Error("no key where none can be stored")
	}
	stored := pinOf(t, s, box)
	if again := pinOf(t, full{s}, box); again != stored {
		t.Errorf("another server has %s, want %s", again, stored)
	}
	if other := pinOf(t, s, newBox(t)); other == "" || other == stored {
		t.Errorf("a server that cannot read it has %q", other)
	}
	if again := pinOf(t, s, box); again != stored {
		t.Errorf("the stored key is %s now, want %s", again, stored)
	}
}
