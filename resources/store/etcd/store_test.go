package etcd

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/etcd/etcdtest"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// shared is one member for all tests that break nothing.
var shared struct {
	sync.Mutex
	prefixes atomic.Int64
}

// open opens a store, under a new prefix unless the configuration has one.
func open(t testing.TB, config Config) *Store {
	t.Helper()
	if config.Prefix == "" {
		config.Prefix = fmt.Sprintf("/test-%d", shared.prefixes.Add(1))
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
	c := etcdtest.Start(t, 1)
	storetest.Run(t, func(t testing.TB, view store.ViewConfig) store.Store {
		return open(t, Config{Endpoints: c.Endpoints(), View: view})
	})
}

// TestConformanceCut is the same with batches that are cut into single operations. It is not parallel: it sets a flag
// that the property tests of the whole process read.
func TestConformanceCut(t *testing.T) {
	c := etcdtest.Start(t, 1)
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	defer func() { _ = checks.Value.Set(before) }()
	if err := checks.Value.Set("10"); err != nil {
		t.Fatal(err)
	}
	storetest.Run(t, func(t testing.TB, view store.ViewConfig) store.Store {
		return open(t, Config{Endpoints: c.Endpoints(), View: view, MaxOps: 1})
	})
}
