package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/causeway-mesh/causeway/api"
)

// TestTokenFilesReplaceOnlyFiles checks that --out refuses anything but a regular file and leaves it alone, and
// replaces an old file that everybody may read by one that only its owner may.
func TestTokenFilesReplaceOnlyFiles(t *testing.T) {
	t.Parallel()
	var made atomic.Int32
	zone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		made.Add(1)
		w.Header().Set(api.ServerHeader, api.ModeZone)
		_, _ = w.Write([]byte(`{"token":"a.b.c","id":"1","expirationTime":"2030-01-01T00:00:00Z"}`))
	}))
	t.Cleanup(zone.Close)
	dir := t.TempDir()
	folder, pipe, old := filepath.Join(dir, "folder"), filepath.Join(dir, "pipe"), filepath.Join(dir, "old")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, []byte("old"), 0o644); err != nil { //nolint:gosec // that others may read it is the point
		t.Fatal(err)
	}
	token := func(out string) (string, error) {
		said, err := exec.Command(filepath.Join(programs(), "causewayctl"), "dataplane", "token", "a",
			"--address", zone.URL, "--out", out, "--timeout", "20s").CombinedOutput()
		return string(said), err
	}
	for out, mode := range map[string]os.FileMode{folder: os.ModeDir, pipe: os.ModeNamedPipe} {
		said, err := token(out)
		if err == nil || !strings.Contains(said, "not a regular file") {
			t.Errorf("%s: %v: %s", out, err, said)
		}
		if there, err := os.Lstat(out); err != nil || there.Mode().Type() != mode {
			t.Errorf("%s was replaced: %v, %v", out, there, err)
		}
	}
	if said, err := token(filepath.Join(dir, "absent", "token")); err == nil {
		t.Errorf("into a folder that does not exist: %s", said)
	}
	if n := made.Load(); n != 0 {
		t.Errorf("%d tokens were made for files that cannot be written", n)
	}
	if said, err := token(old); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	there, err := os.Lstat(old)
	if err != nil || there.Mode().Perm() != 0o600 {
		t.Errorf("the token is in %v, %v", there, err)
	}
	if is, err := os.ReadFile(old); err != nil || string(is) != "a.b.c\n" {
		t.Errorf("the file has %q, %v", is, err)
	}
}
