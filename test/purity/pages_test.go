package purity

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPagesAreReadInFilesOfTheirOwn checks that in test/e2e only files named page_..._test.go read documents: a change of
// a document then runs few tests of whole servers again.
func TestPagesAreReadInFilesOfTheirOwn(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, "test", "e2e", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	reads, pages := regexp.MustCompile(`newReader\(|newIncidents\(|pages\.Read\(|"docs"|"(\.\./)*docs/|"README`), 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		switch found := reads.Find(raw); {
		case strings.HasPrefix(name, "page_"):
			pages++
		case found != nil:
			t.Errorf("test/e2e/%s has %s: move what reads documents into a file named page_..._test.go", name, found)
		}
	}
	if pages < 5 {
		t.Errorf("only %d files read documents", pages)
	}
}
