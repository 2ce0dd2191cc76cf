package server

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestWriteFileReplacesNoDevice checks that a backup to a pipe or a device does not replace it by a file.
func TestWriteFileReplacesNoDevice(t *testing.T) {
	dir := t.TempDir()
	pipe, link, plain := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "plain")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, link, dir} {
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := WriteFile(path, []byte("x"), 0o600); err == nil {
			t.Errorf("%s was replaced", path)
		}
		if after, err := os.Lstat(path); err != nil || after.Mode() != before.Mode() {
			t.Errorf("%s is %v, %v; it was %v", path, after, err, before)
		}
	}
	for range 2 {
		if err := WriteFile(plain, []byte("x"), 0o600); err != nil {
			t.Error(err)
		}
	}
}
