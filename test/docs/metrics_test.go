package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestEveryCounterIsInTheReference looks for the names of counters in all sources, in any form.
func TestEveryCounterIsInTheReference(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	known, err := metricsOf(root)
	if err != nil {
		t.Fatal(err)
	}
	counter := regexp.MustCompile(`"(causeway_[a-z_]+_total)"`)
	seen := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || path == filepath.Join(root, "test")) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, found := range counter.FindAllStringSubmatch(string(raw), -1) {
			seen++
			if !slices.ContainsFunc(known, func(m metric) bool { return m.name == found[1] }) {
				t.Errorf("%s: %s is not in docs/reference/metrics.md", path, found[1])
			}
		}
		return nil
	})
	if err != nil || seen < 10 {
		t.Fatalf("%d counters found: %v", seen, err)
	}
}
