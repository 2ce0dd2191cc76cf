package archive

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

var _ = flag.Bool("update", false, "write the golden file of the present format, where there is none")

// goldenFile is beside the resources of every golden backup.
var goldenFile = File{Path: "kds-tls/ca.crt", Mode: 0o600, Data: []byte("certificate\n")}

// goldenBackup returns the backup that is written today.
func goldenBackup(t *testing.T) []byte {
	t.Helper()
	s := store.NewMemory()
	err := s.Load(func(put func(*resources.Resource) error) (uint64, error) {
		for _, r := range storetest.Golden() {
			if err := put(r); err != nil {
				return 0, err
			}
		}
		return storetest.GoldenRevision, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	h := header
	h.Version = "v0.0.1"
	if err := Write(&out, h, s.Snapshot(), []File{goldenFile}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func ofFormat(t *testing.T, format int) string {
	t.Helper()
	return storetest.GoldenFile(t, format, ".backup", func(path string) error {
		if format != formatVersion {
			return fmt.Errorf("format %d: only the present one can be written", format)
		}
		return os.WriteFile(path, goldenBackup(t), 0o600)
	})
}

func lines(t *testing.T, backup []byte) string {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(backup))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestGoldenBackups checks that a backup of each format still reads to the same content.
func TestGoldenBackups(t *testing.T) {
	paths := []string{"testdata/format-1-first.backup"}
	for format := 1; format <= formatVersion; format++ {
		paths = append(paths, ofFormat(t, format))
	}
	want := storetest.Golden()
	for _, r := range want {
		r.Version = "" // copies get one from their peer
	}
	for _, path := range paths {
		b, err := Read(bytes.NewReader(read(t, path)))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if wrong := storetest.Missing(b.Resources, want); wrong != "" ||
			b.Header.Revision != storetest.GoldenRevision || b.Header.Server != "global" ||
			b.Header.Version != "v0.0.1" || !b.Header.Created.Equal(header.Created) {
			t.Errorf("%s, %+v:\n%s", path, b.Header, wrong)
		}
		if diff := cmp.Diff([]File{goldenFile}, b.Files); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

// TestFormatIsAsItWas checks that today's backup equals the golden file of its format, byte by byte.
func TestFormatIsAsItWas(t *testing.T) {
	if n := len(formats()); n != formatVersion {
		t.Errorf("format %d is written, and %d are read", formatVersion, n)
	}
	if diff := cmp.Diff(lines(t, read(t, ofFormat(t, formatVersion))), lines(t, goldenBackup(t))); diff != "" {
		t.Errorf("the format has changed: give it a new number, and keep what reads the old one\n%s", diff)
	}
}

// TestGoldenBackupOfANewerFormat checks that it is refused with the version that can read it.
func TestGoldenBackupOfANewerFormat(t *testing.T) {
	newer := strings.Replace(lines(t, read(t, ofFormat(t, formatVersion))),
		fmt.Sprintf(`{"causewayBackup":%d,`, formatVersion), fmt.Sprintf(`{"causewayBackup":%d,`, formatVersion+1), 1)
	want := fmt.Sprintf(`the backup has format %d, and this program reads up to %d: the backup's format is too new: use version "v0.0.1", which wrote it, or a newer one`, formatVersion+1, formatVersion)
	if _, err := Read(bytes.NewReader(zipped(newer))); !errors.Is(err, ErrFormat) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
