package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// mostOfREADME is the maximum size of the README in bytes: about two screens. Longer texts have pages in docs/.
const mostOfREADME = 8_000

func TestREADMEIsShort(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > mostOfREADME {
		t.Errorf("README.md has %d bytes, want at most %d", len(raw), mostOfREADME)
	}
}
