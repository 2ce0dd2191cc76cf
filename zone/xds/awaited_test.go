package xds

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/zone/checkpoint"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// TestAwaited: after a start, proxies whose identities were kept are awaited until they come back, their Dataplane is
// deleted, or half a minute is over.
func TestAwaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := store.NewMemory()
		apply := func(op store.Op) {
			if _, err := s.Apply(context.Background(), store.Batch{Ops: []store.Op{op}}); err != nil {
				t.Fatal(err)
			}
		}
		box, path := testBox(), filepath.Join(t.TempDir(), "holdings.sealed")
		keeper := secrets.NewKeeper(store.NewMemory(), box)
		start := func() (*Proxies, *checkpoint.Cache) {
			book := checkpoint.Open(checkpoint.Config{Path: path, Box: box})
			return New(Config{
				Store: s, Status: store.NewMemory(), Home: testHome, Log: slog.New(slog.DiscardHandler), Checkpoint: book,
				Authorities: identity.NewAuthorities(identity.Config{Keeper: keeper, Zone: testHome.Zone}),
			}), book
		}
		x, book := start()
		for _, name := range []string{"a", "b", "c", "never"} {
			apply(store.Op{Put: testResource(dataplaneKey(name), nil,
				map[string]any{"networking": map[string]any{"address": "127.0.0.1"}})})
			if name != "never" {
				stream := connect(x, name)
				<-watchAll(stream, kindSecret)
				stream.end()
			}
		}
		if n := x.Awaited("default"); n != 0 {
			t.Errorf("%d are awaited by a process that nothing was before", n)
		}
		book.Close()
		x, _ = start()
		expect := func(when string, want int) {
			t.Helper()
			if got := x.Awaited("default"); got != want {
				t.Errorf("%s: %d are awaited, want %d", when, got, want)
			}
		}
		expect("at first", 3)
		if n := x.Awaited("other"); n != 0 {
			t.Errorf("%d are awaited in another mesh", n)
		}
		connect(x, "a").end()
		connect(x, "never").end()
		expect("one came back", 2)
		apply(store.Op{Delete: resources.Key{Type: resources.TypeDataplane, Mesh: "default", Name: "b"}})
		x.catchUp()
		expect("one was deleted", 1)
		time.Sleep(awaitFor - time.Nanosecond)
		expect("just before the end", 1)
		time.Sleep(time.Nanosecond)
		expect("in the end", 0)
	})
}
