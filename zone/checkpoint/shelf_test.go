package checkpoint

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/secrets"
)

// shelf is where books are opened one after the other, as processes would.
type shelf struct {
	t    *testing.T
	path string
	box  *secrets.Box
	now  time.Time
	log  bytes.Buffer
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	return &shelf{t: t, path: filepath.Join(t.TempDir(), "holdings.sealed"), box: newBox(t),
		now: time.Unix(2_000_000_000, 0)}
}

func newBox(t *testing.T) *secrets.Box {
	t.Helper()
	box, err := secrets.OpenBox(secrets.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	return box
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *shelf) open() *Cache {
	s.t.Helper()
	s.log.Reset()
	return Open(Config{Path: s.path, Box: s.box, Now: func() time.Time { return s.now },
		Log: slog.New(slog.NewTextHandler(&s.log, nil))})
}

// saved has the book write what it has, as Run would.
func (s *shelf) saved(b *Cache) {
	s.t.Helper()
	must(s.t, b.save())
}

func (s *shelf) file() string {
	s.t.Helper()
	raw, err := os.ReadFile(s.path)
	must(s.t, err)
	return string(raw)
}

func (s *shelf) has(b *Cache, want map[string]string) {
	s.t.Helper()
	got := map[string]string{}
	for i := range b.entries {
		if plain, ok := b.Get(i); ok {
			got[i.Name] = string(plain)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.t.Errorf("there is %v, want %v", got, want)
	}
}

func id(name string) ID { return ID{Kind: "svid", Mesh: "default", Name: name} }
