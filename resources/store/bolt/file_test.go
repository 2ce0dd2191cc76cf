package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

// filled creates a closed store with n resources and returns its file's path and its last snapshot.
func filled(t testing.TB, n int) (string, store.Snapshot) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, Config{Path: path})
	for i := range n {
		storetest.Apply(t, s, storetest.Put(kilobyte(i, i)))
	}
	for i := 0; i < n; i += 3 {
		storetest.Apply(t, s, storetest.Delete(storetest.Key(fmt.Sprint("policy-", i))))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path, s.Snapshot()
}

// refused fails the test unless the file is refused with the error and the words.
func refused(t *testing.T, path string, want error, words ...string) {
	t.Helper()
	s, err := Open(context.Background(), Config{Path: path, Log: quiet()})
	if err == nil {
		_ = s.Close()
		t.Fatal("the file was accepted")
	}
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
	for _, word := range append(words, path) {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not say %q: %v", word, err)
		}
	}
}

func TestReopenGivesTheSame(t *testing.T) {
	t.Parallel()
	path, before := filled(t, 20)
	s := open(t, Config{Path: path})
	storetest.SameState(t, s.Snapshot(), before)
	if got, want := s.Snapshot().Revision(), before.Revision(); got != want {
		t.Fatalf("got revision %d, want %d", got, want)
	}
	if _, ok := s.Changes(before.Revision() - 1); ok {
		t.Error("the changelog reaches back to before the start")
	}
	if _, ok := s.Changes(before.Revision()); !ok {
		t.Error("the changelog does not reach back to the start")
	}
	// Unchanged puts write nothing, after a restart too.
	for r := range before.List(store.Query{Type: storetest.Key("").Type}) {
		if c := storetest.Apply(t, s, storetest.Put(r)); len(c.Changes) != 0 {
			t.Fatalf("%s was written again", r.Key)
		}
	}
	if c := storetest.Apply(t, s, storetest.Put(kilobyte(99, 0))); c.Revision != before.Revision()+1 {
		t.Errorf("got revision %d after %d", c.Revision, before.Revision())
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t, Config{})
	refused(t, s.file.path, ErrInUse, "another process has "+filepath.Dir(s.file.path)+" open")
}

func TestNewerFormatIsRefused(t *testing.T) {
	t.Parallel()
	path, _ := filled(t, 1)
	edit(t, path, func(tx *bbolt.Tx) error {
		return tx.Bucket(storeBucket).Put(formatKey, []byte(strconv.Itoa(formatVersion+6)))
	})
	refused(t, path, ErrFormat, "format 7", "up to 1")
}

// TestTypeOfANewerProgramIsRefused checks that an intact resource of an unknown type is not reported as damage: an
// operator who restored an older backup because of it would lose what came after.
func TestTypeOfANewerProgramIsRefused(t *testing.T) {
	t.Parallel()
	path, _ := filled(t, 3)
	edit(t, path, func(tx *bbolt.Tx) error {
		b := tx.Bucket(resourcesBucket)
		next := storetest.Key("policy-1")
		value := bytes.Clone(b.Get(store.EncodeKey(next)))
		next.Type = "TypeOfTomorrow"
		key := store.EncodeKey(next)
		binary.BigEndian.PutUint32(value, store.Checksum(key, value[store.ChecksumSize:]))
		return b.Put(key, value)
	})
	refused(t, path, ErrFormat, "TypeOfTomorrow", "a newer program wrote it")
}

// edit changes a store's file behind its back.
func edit(t *testing.T, path string, change func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.Update(change); err != nil {
		t.Fatal(err)
	}
}

// TestManyChunks loads more than is decoded at a time, with and without damage in the first and the last entry.
func TestManyChunks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, Config{Path: path})
	const n = 5*decodeChunk + 3
	var b store.Batch
	for i := range n {
		b.Ops = append(b.Ops, store.Op{Put: kilobyte(10_000+i, i)})
	}
	storetest.Apply(t, s, b)
	again := reopened(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(ctx, Config{Path: path, Log: quiet()}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	for _, i := range []int{10_000 + n - 1, 10_000} {
		victim := kilobyte(i, 0).Key
		edit(t, path, func(tx *bbolt.Tx) error {
			return tx.Bucket(resourcesBucket).Put(store.EncodeKey(victim), []byte("damaged"))
		})
		refused(t, path, ErrDamaged, victim.String())
	}
}
