package purity

import (
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const module = "github.com/causeway-mesh/causeway/"

var (
	folderRow  = regexp.MustCompile("(?m)^\\| (`[^|]+`) \\|")
	folderName = regexp.MustCompile("`([^`]+)`")
)

// TestImportsPointDown checks the table of folders in ARCHITECTURE.md: every package is in a row, and imports only
// packages of its own row and of rows below it. Tests import what they need, and programs that write files of the
// repository (deploy/crds) import what test has for them.
func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}
	for i, row := range folderRow.FindAllStringSubmatch(string(raw), -1) {
		for _, name := range folderName.FindAllStringSubmatch(row[1], -1) {
			rows[name[1]] = i
		}
	}
	for from, imported := range importsOf(t) {
		row, found := rowOf(rows, from)
		if !found && !strings.HasPrefix(from, "docs") {
			t.Errorf("ARCHITECTURE.md has no row for %s", from)
		}
		for to := range imported {
			switch below, found := rowOf(rows, to); {
			case strings.HasPrefix(from, "test/"), from == "deploy/crds" && strings.HasPrefix(to, "test/"):
			case strings.HasPrefix(to, "test/"):
				t.Errorf("%s imports %s: only tests import test", from, to)
			case found && below < row:
				t.Errorf("%s imports %s, which is above it in the table of ARCHITECTURE.md", from, to)
			}
		}
	}
}

// rowOf returns the row of a folder, or of the nearest folder that it is in.
func rowOf(rows map[string]int, folder string) (int, bool) {
	for ; folder != "."; folder = path.Dir(folder) {
		if row, found := rows[folder]; found {
			return row, true
		}
	}
	return 0, false
}

// importsOf returns what each package of the repository imports of the others, without its tests.
func importsOf(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && name != root || entry.Name() == "node_modules" ||
			entry.Name() == "testdata" || filepath.ToSlash(name) == root+"/test/tools"):
			return filepath.SkipDir
		case !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder, outside := filepath.Rel(root, filepath.Dir(name))
		folder = filepath.ToSlash(folder)
		if all[folder] == nil {
			all[folder] = map[string]bool{}
		}
		for _, i := range file.Imports {
			if to, own := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module); own {
				all[folder][to] = true
			}
		}
		return errors.Join(err, outside)
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestNoServerLinksKubernetes checks that no module of Kubernetes' clients is needed: what a program links is in go.mod.
// docs/decisions/0068 says why servers have a client of their own.
func TestNoServerLinksKubernetes(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), "sigs.k8s.io/yaml ") {
		t.Fatal("go.mod has other names than this test knows")
	}
	for _, large := range []string{"k8s.io/client-go", "k8s.io/api", "k8s.io/apimachinery", "sigs.k8s.io/controller-runtime", "helm.sh/helm"} {
		if strings.Contains(string(raw), "\t"+large+" ") || strings.Contains(string(raw), "\t"+large+"/") {
			t.Errorf("go.mod needs %s", large)
		}
	}
}
