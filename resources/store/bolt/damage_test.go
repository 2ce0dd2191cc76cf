package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

func TestDamageIsRefused(t *testing.T) {
	t.Parallel()
	victim := storetest.Key("policy-1")
	key := store.EncodeKey(victim)
	flip := func(tx *bbolt.Tx, change func([]byte)) error {
		value := bytes.Clone(tx.Bucket(resourcesBucket).Get(key))
		change(value)
		return tx.Bucket(resourcesBucket).Put(key, value)
	}
	for name, row := range map[string]struct {
		change func(*bbolt.Tx) error
		words  string
	}{
		"flipped bit": {func(tx *bbolt.Tx) error { return flip(tx, func(v []byte) { v[40] ^= 4 }) }, victim.String()},
		"flipped bit in the checksum": {func(tx *bbolt.Tx) error {
			return flip(tx, func(v []byte) { v[0] ^= 1 })
		}, victim.String()},
		"value under another key": {func(tx *bbolt.Tx) error {
			b := tx.Bucket(resourcesBucket)
			return b.Put(store.EncodeKey(storetest.Key("stranger")), b.Get(key))
		}, "stranger"},
		"short value": {func(tx *bbolt.Tx) error { return tx.Bucket(resourcesBucket).Put(key, []byte{1}) },
			victim.String()},
		"lost entry": {func(tx *bbolt.Tx) error { return tx.Bucket(resourcesBucket).Delete(key) }, "5 resources"},
		"key of no parts": {func(tx *bbolt.Tx) error { return tx.Bucket(resourcesBucket).Put([]byte("x"), []byte{1}) },
			"parts"},
		"no bucket":       {func(tx *bbolt.Tx) error { return tx.DeleteBucket(resourcesBucket) }, "buckets"},
		"no store bucket": {func(tx *bbolt.Tx) error { return tx.DeleteBucket(storeBucket) }, "buckets"},
		"no format":       {func(tx *bbolt.Tx) error { return tx.Bucket(storeBucket).Delete(formatKey) }, "format"},
		"no state":        {func(tx *bbolt.Tx) error { return tx.Bucket(storeBucket).Delete(stateKey) }, "revision"},
		"other state":     {func(tx *bbolt.Tx) error { return tx.Bucket(storeBucket).Put(stateKey, []byte(`0000{"revision":1}`)) }, "revision"},
	} {
		t.Run(name, func(t *testing.T) {
			path, _ := filled(t, 9)
			edit(t, path, row.change)
			refused(t, path, ErrDamaged, row.words, "restore it from a backup")
		})
	}
}

func TestForeignFileIsRefused(t *testing.T) {
	t.Parallel()
	for name, content := range map[string][]byte{
		"empty":    {},
		"one byte": {1},
		"text":     []byte(strings.Repeat("not a store\n", 10_000)),
		"zeros":    make([]byte, 1<<16),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			refused(t, path, ErrDamaged)
			if left, _ := os.ReadFile(path); !bytes.Equal(left, content) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestTruncatedFileIsRefused(t *testing.T) {
	t.Parallel()
	path, _ := filled(t, 60)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	used := usedBytes(t, path)
	for _, size := range []int{1, 100, 4095, 4096, 4097, 8191, 8192, 12288, 16384, used / 2, used - 4096, used - 1} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			cut := filepath.Join(t.TempDir(), "store.db")
			if err := os.WriteFile(cut, whole[:size], 0o600); err != nil {
				t.Fatal(err)
			}
			refused(t, cut, ErrDamaged)
		})
	}
}

func usedBytes(t *testing.T, path string) (n int) {
	edit(t, path, func(tx *bbolt.Tx) error { n = int(tx.Size()); return nil })
	return n
}

// TestFlippedBits flips bits all over the file: it is refused, or it loads unchanged (the flip is outside the used
// part). A file that loads must also be fit for writing.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	path, before := filled(t, 60)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const seed, flips = 7, 200
	random := rand.New(rand.NewPCG(seed, seed))
	dir, found := t.TempDir(), 0
	whole = whole[:usedBytes(t, path)] // The rest is room to grow.
	for i := range flips {
		at := random.IntN(len(whole))
		damaged := bytes.Clone(whole)
		damaged[at] ^= 1 << random.IntN(8)
		flipped := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(flipped, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(context.Background(), Config{Path: flipped, Log: quiet()})
		if err != nil {
			found++
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrFormat) {
				t.Errorf("byte %d: got %v, want ErrDamaged", at, err)
			}
			continue
		}
		// One of two meta pages may be lost: then the file is as it was one write before, at that revision.
		if s.Snapshot().Revision() == before.Revision() {
			storetest.SameState(t, s.Snapshot(), before)
		} else if at >= 2*os.Getpagesize() {
			t.Errorf("byte %d: loaded at revision %d, not %d", at, s.Snapshot().Revision(), before.Revision())
		}
		storetest.Apply(t, s, storetest.Put(kilobyte(1000, 1)))
		after := s.Snapshot()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, Config{Path: flipped})
		storetest.SameState(t, s.Snapshot(), after)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// Most pages of the file are free.
	if found < flips/10 {
		t.Errorf("only %d of %d flips were found", found, flips)
	}
}

// TestLostMetaIsTold damages each of the two pages that lead to the data. With the newer one, the last write is gone,
// although it was acknowledged: bbolt opens the file by the other page and says nothing. So the store says that a write
// may be missing, and so does a scan.
func TestLostMetaIsTold(t *testing.T) {
	t.Parallel()
	path, before := filled(t, 9)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size := os.Getpagesize()
	missing := 0
	for id := range 2 {
		damaged := bytes.Clone(whole)
		damaged[id*size+pageHeader+16] ^= 1
		flipped := filepath.Join(t.TempDir(), "store.db")
		if err := os.WriteFile(flipped, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := ScanFile(flipped); err != nil || !s.LostMeta {
			t.Errorf("page %d: the scan: %v, want a lost page", id, err)
		}
		var log bytes.Buffer
		s := open(t, Config{Path: flipped, Log: slog.New(slog.NewTextHandler(&log, nil))})
		revision := s.Snapshot().Revision()
		if revision != before.Revision() {
			missing++
		}
		if want := fmt.Sprintf("revision=%d", revision); !strings.Contains(log.String(), "the last write may be missing") ||
			!strings.Contains(log.String(), want) {
			t.Errorf("page %d, revision %d: the log is %q", id, revision, log.String())
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if missing != 1 {
		t.Errorf("%d of the 2 pages had the last write", missing)
	}
	var log bytes.Buffer
	_ = open(t, Config{Path: path, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if s := scan(whole); s.LostMeta || log.Len() > 0 {
		t.Errorf("the twin: %v, %q", s.LostMeta, log.String())
	}
}

// TestKeyBeyondTheEnd damages the lengths of keys of branch pages, one after another, so that they exceed the file.
// Only the check of the file reads those of some pages.
func TestKeyBeyondTheEnd(t *testing.T) {
	t.Parallel()
	path, _ := filled(t, 60)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// bbolt's format: a page begins with its number (8 bytes), its kind and the number of elements (2 each) and another
	// 4; an element of a branch has the position and the length of its key (4 each) and the page below (8).
	const header, element, branch = 16, 16, 1
	found := 0
	whole = whole[:usedBytes(t, path)] // The rest is room to grow.
	for page := 0; page < len(whole); page += os.Getpagesize() {
		if binary.LittleEndian.Uint16(whole[page+8:]) != branch {
			continue
		}
		for i := range int(binary.LittleEndian.Uint16(whole[page+10:])) {
			damaged := bytes.Clone(whole)
			damaged[page+header+i*element+6] |= 1 << 3 // of the length
			flipped := filepath.Join(t.TempDir(), "store.db")
			if err := os.WriteFile(flipped, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(context.Background(), Config{Path: flipped, Log: quiet()})
			switch {
			case errors.Is(err, ErrDamaged):
				found++
			case err != nil:
				t.Errorf("page at %d, key %d: got %v, want ErrDamaged", page, i, err)
			default: // the page is unused
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no key of a page in use was damaged")
	}
}
