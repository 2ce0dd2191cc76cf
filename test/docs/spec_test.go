package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

var (
	specNames = regexp.MustCompile(`(?s)pub const NAMES: [^=]*= \[(.*?)\];`)
	specName  = regexp.MustCompile(`"([^"]+)"`)
	promises  = regexp.MustCompile(`(?s)\n## Promises\n(.*?)\n## `)
)

// TestSpecHasTheNamesOfThePromises checks that the names of what the specification checks match docs/reliability.md, in
// exactly the rows of its table that name the specification.
func TestSpecHasTheNamesOfThePromises(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(root, name)) //nolint:gosec // a file of the repository
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	table := promises.FindStringSubmatch(read("docs/reliability.md"))
	source := specNames.FindStringSubmatch(read("test/spec/src/promises.rs"))
	if table == nil || source == nil {
		t.Fatal("there is no table of promises, or no names in the specification")
	}
	specified := specifiedIn(table[1])
	checked := map[string]bool{}
	for _, m := range specName.FindAllStringSubmatch(source[1], -1) {
		checked[m[1]] = true
		if !specified[m[1]] {
			t.Errorf("the specification checks %q, and docs/reliability.md has no row of that name with test/spec in it", m[1])
		}
	}
	for name := range specified {
		if !checked[name] {
			t.Errorf("docs/reliability.md says that test/spec shows %q, which it does not check", name)
		}
	}
	if len(checked) == 0 {
		t.Error("the specification checks nothing")
	}
}

// specifiedIn returns the promises of a table that name the specification, in their first row or in the rows below it
// without a promise.
func specifiedIn(table string) map[string]bool {
	out, promise := map[string]bool{}, ""
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		if name := strings.TrimSpace(cells[1]); name != "" {
			promise = name
		}
		if strings.Contains(cells[2], "`test/spec`") {
			out[promise] = true
		}
	}
	return out
}
