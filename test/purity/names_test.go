package purity

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// quoted matches text in backquotes, linked the target of a link, and testName a possible test name.
var (
	quoted       = regexp.MustCompile("`([^`\n]+)`")
	linked       = regexp.MustCompile(`\]\(([^)#]+)\)`)
	testFunction = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)`)
	testName     = regexp.MustCompile(`^Test[A-Z]\w+$`)
	someName     = regexp.MustCompile(`^(\.golangci\.yml|(access|cmd|enrolment|global|zone|kds|resources|server|secrets|tokens|hashing|test|docs|deploy)(/[\w.-]+)*/?)$`)
)

// TestNamesInDocuments checks that the files, folders and tests named in the documents for newcomers exist.
func TestNamesInDocuments(t *testing.T) {
	t.Parallel()
	tests := testsOf(t, root)
	for _, document := range []string{"README.md", "ARCHITECTURE.md", "docs/reliability.md", "docs/security.md"} {
		raw, err := os.ReadFile(filepath.Join(root, document))
		if err != nil {
			t.Fatal(err)
		}
		checked := 0
		for _, m := range quoted.FindAllStringSubmatch(string(raw), -1) {
			name := m[1]
			switch {
			case testName.MatchString(name):
				checked++
				if !tests[name] {
					t.Errorf("%s: there is no test %s", document, name)
				}
			case someName.MatchString(name):
				checked++
				exists(t, root, document, name)
			}
		}
		for _, m := range linked.FindAllStringSubmatch(string(raw), -1) {
			if !strings.Contains(m[1], "://") {
				checked++
				exists(t, root, document, m[1])
			}
		}
		if checked == 0 {
			t.Errorf("%s names nothing: does this test still read it rightly?", document)
		}
	}
}

func exists(t *testing.T, root, document, name string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); err != nil {
		t.Errorf("%s: there is no %s", document, name)
	}
}

// testsOf returns the names of all tests of the repository.
func testsOf(t *testing.T, root string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range testFunction.FindAllStringSubmatch(string(raw), -1) {
			all[m[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
