package bolt

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

var _ = flag.Bool("update", false, "write the golden file of the present format, where there is none")

// golden unpacks a golden file.
func golden(t *testing.T, packed string) string {
	t.Helper()
	raw, err := os.ReadFile(packed)
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "store.db")
	content, err := io.ReadAll(unpacked)
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// ofFormat returns the unpacked golden file of a format; it can create that of the current format.
func ofFormat(t *testing.T, format int) string {
	t.Helper()
	return golden(t, storetest.GoldenFile(t, format, ".db.gz", func(path string) error {
		plain := filepath.Join(t.TempDir(), "store.db")
		if err := Create(plain, storetest.GoldenRevision, storetest.Golden()); err != nil || format != formatVersion {
			return fmt.Errorf("format %d: only the present one can be written: %w", format, err)
		}
		raw, err := os.ReadFile(plain)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		if _, err := w.Write(raw); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		return os.WriteFile(path, out.Bytes(), 0o600)
	}))
}

// entries returns all keys and values of a file.
func entries(t *testing.T, path string) map[string]string {
	t.Helper()
	out := map[string]string{}
	edit(t, path, func(tx *bbolt.Tx) error {
		return tx.ForEach(func(bucket []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error { out[fmt.Sprintf("%s/%s", bucket, k)] = string(v); return nil })
		})
	})
	return out
}

// TestGoldenFiles checks that a file of each format still reads to the same content.
func TestGoldenFiles(t *testing.T) {
	t.Parallel()
	paths := map[string]string{"format-1-first": golden(t, "testdata/format-1-first.db.gz")}
	for format := 1; format <= formatVersion; format++ {
		paths[fmt.Sprint("format-", format)] = ofFormat(t, format)
	}
	for name, path := range paths {
		want := storetest.Golden()
		if name == "format-1-first" { // it kept no versions
			for _, r := range want {
				r.Version = ""
			}
		}
		s := open(t, Config{Path: path, Program: "v1.2.3"})
		if wrong := storetest.Missing(slices.Collect(store.All(s.Snapshot())), want); wrong != "" ||
			s.Snapshot().Revision() != storetest.GoldenRevision {
			t.Errorf("%s at %d:\n%s", name, s.Snapshot().Revision(), wrong)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got := entries(t, path)["store/program"]; got != "v1.2.3" {
			t.Errorf("%s: opened by %q", name, got)
		}
	}
}

// TestFormatIsAsItWas checks that today's file equals the golden file of its format, byte by byte.
func TestFormatIsAsItWas(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db")
	if err := Create(path, storetest.GoldenRevision, storetest.Golden()); err != nil {
		t.Fatal(err)
	}
	got, want := entries(t, path), entries(t, ofFormat(t, formatVersion))
	if !maps.Equal(got, want) {
		t.Errorf("the format has changed: give it a new number, and a migration\ngot  %q\nwant %q", got, want)
	}
}

// TestGoldenFileOfANewerFormat checks that it is refused with the version that can read it.
func TestGoldenFileOfANewerFormat(t *testing.T) {
	t.Parallel()
	path := ofFormat(t, formatVersion)
	newer := strconv.Itoa(formatVersion + 1)
	for program, needed := range map[string]string{"v9.8.7": `use version "v9.8.7", which wrote it, or a newer one`,
		"": "use the newer program"} {
		edit(t, path, func(tx *bbolt.Tx) error {
			b := tx.Bucket(storeBucket)
			if err := b.Put(programKey, []byte(program)); err != nil {
				return err
			}
			return b.Put(formatKey, []byte(newer))
		})
		before := entries(t, path)
		want := "open the store: " + path + " has format " + newer + ", and this program reads up to " +
			strconv.Itoa(formatVersion) + ": format is too new: " + needed
		s, err := Open(context.Background(), Config{Path: path, Log: quiet(), Program: "v1"})
		if err == nil {
			_ = s.Close()
		}
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if !maps.Equal(entries(t, path), before) {
			t.Error("it was changed")
		}
	}
}
