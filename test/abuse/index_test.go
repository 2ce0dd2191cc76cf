package abuse

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// inCell matches a folder or a test in backquotes, or the name of a row of this package's table in quotation marks.
var inCell = regexp.MustCompile("`([^`]+)`|\"([^\"]+)\"")

// attemptsKnown is the least number of attempts that the page leads from.
const attemptsKnown = 45

// TestAttemptsLeadToTheirTests reads the table of docs/security.md that says which test makes which attempt: each names a
// test that is there, in its folder, and rows that are in the table of this package.
func TestAttemptsLeadToTheirTests(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, r := range rowsOf(t) {
		rows[r.Name] = true
	}
	_, section, found := strings.Cut(string(read(t, filepath.Join(root, "docs", "security.md"))), "\n## Where it is shown\n")
	if !found {
		t.Fatal("docs/security.md does not say where it is shown")
	}
	attempts := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 4 || strings.HasPrefix(cells[1], " ---") || strings.HasPrefix(cells[1], " **") || cells[1] == " attempt " {
			continue
		}
		attempts++
		if err := leadsToTests(root, cells[2], rows); err != "" {
			t.Errorf("%s: %s", strings.TrimSpace(cells[1]), err)
		}
	}
	if attempts < attemptsKnown {
		t.Errorf("the page leads from %d attempts, want at least %d", attempts, attemptsKnown)
	}
}

// leadsToTests returns what is wrong with the tests of a cell, or "".
func leadsToTests(root, cell string, rows map[string]bool) string {
	folder, last := "", ""
	for _, m := range inCell.FindAllStringSubmatch(cell, -1) {
		switch name := m[1]; {
		case m[2] != "" && last != "TestAbuse":
			return "a row that is not of TestAbuse: " + m[2]
		case m[2] != "" && !rows[m[2]]:
			return "there is no row " + m[2]
		case m[2] != "":
		case strings.HasPrefix(name, "Test"):
			if last = name; !hasTest(filepath.Join(root, filepath.FromSlash(folder)), name) {
				return "there is no " + name + " in " + folder
			}
		default:
			folder = name
		}
	}
	if last == "" {
		return "it leads to no test"
	}
	return ""
}

func hasTest(folder, name string) bool {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return false
	}
	for _, file := range files {
		if raw, err := os.ReadFile(file); err == nil && bytes.Contains(raw, []byte("\nfunc "+name+"(")) {
			return true
		}
	}
	return false
}
