package bolt

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(child())
	}
	goleak.VerifyTestMain(m)
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// open opens a store, in a new directory unless the configuration has a path.
func open(t testing.TB, config Config) *Store {
	t.Helper()
	if config.Path == "" {
		config.Path = filepath.Join(t.TempDir(), "store.db")
	}
	if config.Log == nil {
		config.Log = quiet()
	}
	s, err := Open(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB, view store.ViewConfig) store.Store {
		return open(t, Config{View: view})
	})
}
