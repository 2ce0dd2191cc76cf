package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestShownAddressIsEverybodys checks that a page that shows a zone joining through 127.0.0.1 starts its global there. By
// default a global listens on all addresses, and each reader sees one of their own machine.
func TestShownAddressIsEverybodys(t *testing.T) {
	t.Parallel()
	const at = "127.0.0.1:5685"
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	check := func(path string) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		page := string(raw)
		if !strings.Contains(page, "through "+at) {
			return
		}
		for line := range strings.Lines(page) {
			if strings.Contains(line, "causeway-global run ") {
				shown++
				if !strings.Contains(line, "--kds-address "+at) && !strings.Contains(page, "kds-address: "+at) {
					t.Errorf("%s: %s does not listen where the page shows it", path, strings.TrimSpace(line))
				}
			}
		}
	}
	check(filepath.Join(root, "README.md"))
	if err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			check(path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if shown < 3 {
		t.Errorf("%d globals are started on such pages, and the README has one", shown)
	}
}
