package bolt

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

// TestMigrations checks that an older file is migrated once, whole or not at all, with a copy of it beside; the newest
// is left alone. The steps are made up: there has been one format so far.
func TestMigrations(t *testing.T) {
	t.Parallel()
	path, before := filled(t, 5)
	run := func(steps ...migration) error {
		f, err := openFile(path, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return errors.Join(f.migrate(steps), f.close())
	}
	value := func(path, key string) (v string) {
		edit(t, path, func(tx *bbolt.Tx) error { v = string(tx.Bucket(storeBucket).Get([]byte(key))); return nil })
		return v
	}
	write := func(key string) migration {
		return func(tx *bbolt.Tx) error { return tx.Bucket(storeBucket).Put([]byte(key), []byte("x")) }
	}
	kept := path + ".format-1"
	if err := run(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(kept); err == nil {
		t.Error("the newest format was copied")
	}
	failing := func(*bbolt.Tx) error { return errors.New("it cannot") }
	if err := run(write("a"), failing); err == nil || !strings.Contains(err.Error(), "from format 2 to 3") {
		t.Errorf("got %v", err)
	}
	if value(path, "format") != "1" || value(path, "a") != "" {
		t.Error("half of a migration is there")
	}
	for range 2 {
		if err := run(write("a"), write("b")); err != nil {
			t.Fatal(err)
		}
		if value(path, "format") != "3" || value(path, "a") == "" || value(path, "b") == "" ||
			value(kept, "format") != "1" || value(kept, "a") != "" {
			t.Error("the migration, or the copy, is not what it should be")
		}
	}
	refused(t, path, ErrFormat, "format 3")
	s := open(t, Config{Path: kept})
	storetest.SameState(t, s.Snapshot(), before)
}

func TestEachFormatHasItsMigration(t *testing.T) {
	t.Parallel()
	if n := len(migrations()); n != formatVersion-1 {
		t.Errorf("there are %d migrations for format %d", n, formatVersion)
	}
}
