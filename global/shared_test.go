package global

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
)

// TestShareWithAnotherKey checks a store with secrets but without a name, such as one restored from a single server: it
// accepts nothing from a server with another key, which would lock out the right one.
func TestShareWithAnotherKey(t *testing.T) {
	t.Parallel()
	keys := func() *secrets.Box {
		box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return box
	}
	right, wrong := keys(), keys()
	s := store.NewMemory()
	if _, err := secrets.NewKeeper(s, right).Put(t.Context(), "of-before", []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	before := s.Snapshot().Revision()
	config := &Config{DataDir: t.TempDir(), clusterID: "of-wrong", Now: time.Now}
	err := share(t.Context(), config, s, wrong)
	if !errors.Is(err, secrets.ErrWrongKey) || !strings.Contains(err.Error(), "--secrets-key-file") {
		t.Errorf("share ended with %v", err)
	}
	if now := s.Snapshot().Revision(); now != before {
		t.Errorf("the store is at %d, was at %d", now, before)
	}
	config = &Config{DataDir: t.TempDir(), clusterID: "of-right", Now: time.Now}
	if err := share(t.Context(), config, s, right); err != nil {
		t.Errorf("with the right key: %v", err)
	}
}
