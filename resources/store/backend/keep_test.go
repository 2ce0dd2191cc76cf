package backend

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/causeway-mesh/causeway/resources/store/archive"
	"github.com/causeway-mesh/causeway/resources/store/storetest"
)

// TestKeep checks that the backup before a migration is a regular backup, and that nothing else is left in the folder.
func TestKeep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := Config{Kind: Etcd, Path: filepath.Join(dir, File), Owner: archive.Header{Server: "global", Version: "v1.2.3"},
		Log: slog.New(slog.DiscardHandler)}
	if err := c.keep(1, storetest.GoldenRevision, storetest.Golden()); err != nil {
		t.Fatal(err)
	}
	there, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(there) != 1 {
		t.Fatalf("there is %q, %v", there, err)
	}
	if ok, err := filepath.Match("etcd-format-1-*.backup", filepath.Base(there[0])); !ok || err != nil {
		t.Errorf("it is called %s", there[0])
	}
	raw, err := os.ReadFile(there[0])
	if err != nil {
		t.Fatal(err)
	}
	b, err := archive.Read(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	want := storetest.Golden()
	for _, r := range want {
		r.Version = ""
	}
	if wrong := storetest.Missing(b.Resources, want); wrong != "" || b.Header.Server != "global" ||
		b.Header.Version != "v1.2.3" || b.Header.Revision != storetest.GoldenRevision {
		t.Errorf("%+v\n%s", b.Header, wrong)
	}
	info, err := os.Stat(there[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	c.Path = filepath.Join(dir, "nowhere", File)
	if err := c.keep(1, 1, nil); err == nil {
		t.Error("kept where nothing can be")
	}
}
