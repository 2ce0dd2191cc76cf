package secrets

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/causeway-mesh/causeway/resources/store"
)

// TestOwnKey checks that the key is created once, only for its owner, and logged. Servers that start together agree on
// one.
func TestOwnKey(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	first, err := OpenBox(Config{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, KeyFileName))
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(filepath.Join(dir, KeyFileName)); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if !strings.Contains(log.String(), "store it elsewhere") ||
		strings.Contains(log.String(), strings.TrimSpace(string(raw))) {
		t.Errorf("log: %s", log.String())
	}
	sealed, _ := first.Seal([]byte("x"), "p")
	if _, err := open(t, Config{Dir: dir}).Open(sealed, "p"); err != nil {
		t.Error(err)
	}
	if _, err := open(t, Config{KeyFile: filepath.Join(dir, KeyFileName)}).Open(sealed, "p"); err != nil {
		t.Error(err)
	}

	// A data folder may be a file system of its own, of which root alone reads one folder.
	mount := t.TempDir()
	if err := os.Mkdir(filepath.Join(mount, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(mount, "lost+found", "#12"), sealed, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(mount, "lost+found"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(mount, "lost+found"), 0o700) }) //nolint:gosec // a folder, for its removal
	if _, err := OpenBox(Config{Dir: mount, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Errorf("a data folder that is a file system: %v", err)
	}

	// A key that is lost is not replaced, whatever the folder is called.
	for _, name := range []string{"plain", "a[1]", `b\c`} {
		lost := filepath.Join(t.TempDir(), name)
		if err := os.MkdirAll(filepath.Join(lost, "membership"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(lost, "membership", "sealed"), sealed, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenBox(Config{Dir: lost, Log: slog.New(slog.DiscardHandler)}); !errors.Is(err, ErrKey) {
			t.Errorf("%s: another key beside what is sealed: %v", name, err)
		}
	}

	shared := t.TempDir()
	boxes := make([]*Box, 8)
	var wg sync.WaitGroup
	for n := range boxes {
		wg.Go(func() { boxes[n] = open(t, Config{Dir: shared}) })
	}
	wg.Wait()
	sealed, _ = boxes[0].Seal([]byte("x"), "p")
	for _, b := range boxes {
		if _, err := b.Open(sealed, "p"); err != nil {
			t.Error(err)
		}
	}
}

func TestKeeper(t *testing.T) {
	ctx := t.Context()
	memory := store.NewMemory()
	k := NewKeeper(memory, open(t, Config{Dir: t.TempDir()}))
	if _, _, err := k.Get(ctx, "zone-ca"); !errors.Is(err, ErrNotFound) {
		t.Fatalf("got %v", err)
	}
	next := k.Changed()
	first, err := k.Put(ctx, "zone-ca", []byte("one"), 0)
	if err != nil || first == 0 {
		t.Fatal(first, err)
	}
	<-next
	for _, stale := range []uint64{0, first + 1} {
		if _, err := k.Put(ctx, "zone-ca", []byte("two"), stale); !errors.Is(err, ErrChanged) {
			t.Errorf("version %d: got %v", stale, err)
		}
	}
	second, err := k.Put(ctx, "zone-ca", []byte("two"), first)
	if err != nil {
		t.Fatal(err)
	}
	if got, version, err := k.Get(ctx, "zone-ca"); string(got) != "two" || version != second ||
		k.Version("zone-ca") != second || err != nil {
		t.Errorf("got %q at %d, %v", got, version, err)
	}
	if _, err := k.Put(ctx, "another", []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(k.Names(), " "); got != "another zone-ca" {
		t.Errorf("names: %s", got)
	}
	if err := k.Delete(ctx, "zone-ca", first); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v", err)
	}
	if err := k.Delete(ctx, "zone-ca", second); err != nil || k.Version("zone-ca") != 0 {
		t.Errorf("got %v", err)
	}
	if err := k.Delete(ctx, "zone-ca", second); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v", err)
	}
}
