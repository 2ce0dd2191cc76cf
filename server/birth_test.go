package server

import (
	"os"
	"path/filepath"
	"testing"
)

// TestIsCopy checks that a folder is a copy when its files were copied, not when it is new, settled or moved.
func TestIsCopy(t *testing.T) {
	at := t.TempDir()
	if now, err := birthOf(at); err != nil || now == "" {
		t.Logf("this file system does not say when a folder was made (%v): nothing is taken for a copy", err)
		if copied, _ := IsCopy(at); copied {
			t.Error("and yet it is taken for one")
		}
		return
	}
	is := func(name string, want bool) {
		t.Helper()
		got, err := IsCopy(filepath.Join(at, name))
		if err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(at, "first"), 0o700))
	is("first", false)
	must(Settle(filepath.Join(at, "first")))
	is("first", false)
	made, err := birthOf(filepath.Join(at, "first"))
	must(err)
	for again := made; again == made; { // file system timestamps have steps of some milliseconds
		must(os.RemoveAll(filepath.Join(at, "second")))
		must(os.CopyFS(filepath.Join(at, "second"), os.DirFS(filepath.Join(at, "first"))))
		again, err = birthOf(filepath.Join(at, "second"))
		must(err)
	}
	is("second", true)
	must(os.Rename(filepath.Join(at, "first"), filepath.Join(at, "third")))
	is("third", false)
	must(Settle(filepath.Join(at, "second")))
	is("second", false)
}
