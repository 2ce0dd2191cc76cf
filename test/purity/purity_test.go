package purity

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// TestPackagesWithoutRaceDetectorArePure checks the packages in PURE of the Makefile, whose tests run without the race
// detector: they start no goroutines, use no channels, locks or atomic variables, and write no variables of the package.
// A race in them therefore needs two goroutines of a caller, whose own tests run with the detector.
func TestPackagesWithoutRaceDetectorArePure(t *testing.T) {
	t.Parallel()
	for _, name := range listed(t, "PURE") {
		files, err := readPackage(os.DirFS(filepath.Join(root, name)))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has %d files, %v", name, len(files), err)
		}
		for _, problem := range impure(files) {
			t.Errorf("%s/%s: take %s out of PURE in the Makefile, or change this", name, problem, name)
		}
	}
}

// listed returns the words of a variable of the Makefile.
func listed(t *testing.T, variable string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + variable + ` *:= (.+)$`).FindSubmatch(bytes.ReplaceAll(raw, []byte("\\\n"), nil))
	if found == nil {
		t.Fatalf("the Makefile has no line that begins with %s :=", variable)
	}
	return strings.Fields(string(found[1]))
}

// TestTestsWithoutRaceDetectorExist checks the names in UNRACED of the Makefile: each is a test in one of the packages in
// UNRACED_IN, or of test/abuse, and in no other package, where the race detector would pass it over and nothing else runs it.
func TestTestsWithoutRaceDetectorExist(t *testing.T) {
	t.Parallel()
	places, found := append(listed(t, "UNRACED_IN"), "test/abuse"), map[string][]string{}
	for name, files := range testFiles(t) {
		for _, file := range files {
			found[name] = append(found[name], path.Dir(file))
		}
	}
	pure := listed(t, "PURE")
	for _, name := range listed(t, "UNRACED") {
		in := slices.DeleteFunc(found[name], func(folder string) bool { return slices.Contains(pure, folder) })
		if len(in) != 1 || !slices.Contains(places, in[0]) {
			t.Errorf("Test%s is in %q, want it in one of %q", name, in, places)
		}
	}
}

// TestSlowTestsExist checks the names in SLOW of the Makefile: each is one test beside the code.
func TestSlowTestsExist(t *testing.T) {
	t.Parallel()
	found := testFiles(t)
	for _, name := range listed(t, "SLOW") {
		files := slices.DeleteFunc(found[name], func(file string) bool { return strings.HasPrefix(file, "test/") })
		if len(files) != 1 {
			t.Errorf("Test%s is in %q, want it in one file beside the code", name, files)
		}
	}
}

// TestTestsOfTheGateExist checks the names in CLUSTER and in APISERVER of the Makefile: each is a test of the package that the
// gate runs them from.
func TestTestsOfTheGateExist(t *testing.T) {
	t.Parallel()
	found := testFiles(t)
	for list, folder := range map[string]string{"CLUSTER": "test/kubernetes", "APISERVER": "test/kubernetes/bridge"} {
		for _, name := range listed(t, list) {
			if files := found["Kubernetes"+name]; len(files) != 1 || path.Dir(files[0]) != folder {
				t.Errorf("TestKubernetes%s of %s is in %q, want it in %s", name, list, files, folder)
			}
		}
	}
}

// TestTestsOfARealEnvoyHaveNamesOfTheirOwn checks the files whose tests make unit passes over by name: no other file beside
// the code has a test of such a name, which make unit would pass over, too.
func TestTestsOfARealEnvoyHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	withEnvoy := func(file string) bool { return strings.HasPrefix(path.Base(file), "envoy_") }
	some := false
	for name, files := range testFiles(t) {
		files = slices.DeleteFunc(files, func(file string) bool { return strings.HasPrefix(file, "test/") })
		some = some || slices.ContainsFunc(files, withEnvoy)
		if slices.ContainsFunc(files, withEnvoy) && len(files) > 1 {
			t.Errorf("Test%s is in %q: rename those outside envoy_..._test.go", name, files)
		}
	}
	if !some {
		t.Error("no test is in a file named envoy_..._test.go")
	}
}

// testFiles returns the files of the repository that declare a test, by the test's name without Test.
func testFiles(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	test := regexp.MustCompile(`(?m)^func Test(\w+)\(t \*testing\.T\)`)
	eachTestFile(t, func(file, text string) {
		for _, match := range test.FindAllStringSubmatch(text, -1) {
			found[match[1]] = append(found[match[1]], file)
		}
	})
	return found
}

// readPackage parses the files of a package by name, without its tests.
func readPackage(folder fs.FS) (map[string]*ast.File, error) {
	names, err := fs.Glob(folder, "*.go")
	if err != nil {
		return nil, err
	}
	files := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		raw, err := fs.ReadFile(folder, name)
		if err != nil {
			return nil, err
		}
		if files[name], err = parser.ParseFile(token.NewFileSet(), name, raw, 0); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// allowed are the names of package sync that make one value and keep it.
var allowed = []string{"OnceValue", "OnceValues"}

// impure lists what needs the race detector, each as "FILE: WHAT".
func impure(files map[string]*ast.File) []string {
	variables := variablesOf(files)
	var out []string
	for name, file := range files {
		report := func(format string, args ...any) { out = append(out, name+": "+fmt.Sprintf(format, args...)) }
		for _, spec := range file.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			if path == "sync/atomic" || strings.HasPrefix(path, "golang.org/x/sync/") || path == "sync" && spec.Name != nil {
				report("it imports %s", path)
			}
		}
		for _, declared := range file.Decls {
			function, is := declared.(*ast.FuncDecl)
			ast.Inspect(declared, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					report("it starts a goroutine")
				case *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
					report("it uses a channel")
				case *ast.SelectorExpr:
					if x, is := n.X.(*ast.Ident); is && x.Name == "sync" && !slices.Contains(allowed, n.Sel.Name) {
						report("it uses sync.%s", n.Sel.Name)
					}
				case *ast.AssignStmt:
					for _, left := range n.Lhs {
						if v := written(left, variables); v != "" && n.Tok != token.DEFINE && is && !shadows(function, v) {
							report("%s writes %s", function.Name.Name, v)
						}
					}
				case *ast.IncDecStmt:
					if v := written(n.X, variables); v != "" && is && !shadows(function, v) {
						report("%s writes %s", function.Name.Name, v)
					}
				}
				return true
			})
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// variablesOf returns the names of a package's variables.
func variablesOf(files map[string]*ast.File) map[string]bool {
	out := map[string]bool{}
	for _, file := range files {
		for _, declared := range file.Decls {
			group, is := declared.(*ast.GenDecl)
			if !is || group.Tok != token.VAR {
				continue
			}
			for _, spec := range group.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					out[name.Name] = true
				}
			}
		}
	}
	return out
}

// written returns the variable of the package that an assignment to left changes, or parts of it; empty if there is none.
func written(left ast.Expr, variables map[string]bool) string {
	for {
		switch x := left.(type) {
		case *ast.IndexExpr:
			left = x.X
		case *ast.SelectorExpr:
			left = x.X
		case *ast.StarExpr:
			left = x.X
		case *ast.ParenExpr:
			left = x.X
		case *ast.Ident:
			if variables[x.Name] {
				return x.Name
			}
			return ""
		default:
			return ""
		}
	}
}

// shadows reports whether the function declares the name for itself.
func shadows(function *ast.FuncDecl, name string) bool {
	found := false
	ast.Inspect(function, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			found = found || slices.ContainsFunc(n.Names, func(id *ast.Ident) bool { return id.Name == name })
		case *ast.ValueSpec:
			found = found || slices.ContainsFunc(n.Names, func(id *ast.Ident) bool { return id.Name == name })
		case *ast.AssignStmt:
			found = found || n.Tok == token.DEFINE && slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool {
				id, is := e.(*ast.Ident)
				return is && id.Name == name
			})
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{n.Key, n.Value} {
				id, is := e.(*ast.Ident)
				found = found || is && n.Tok == token.DEFINE && id.Name == name
			}
		}
		return true
	})
	return found
}

// TestImpurityIsFound checks the check: each of these needs the race detector, and the last does not.
func TestImpurityIsFound(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`func f() { go f() }`:                                       "it starts a goroutine",
		`func f(c chan int) {}`:                                     "it uses a channel",
		`import "sync"; var l sync.Mutex`:                           "it uses sync.Mutex",
		`import s "sync"; var l s.Mutex`:                            "it imports sync",
		`import "sync/atomic"; var n atomic.Int64`:                  "it imports sync/atomic",
		`import "golang.org/x/sync/errgroup"; var g errgroup.Group`: "it imports golang.org/x/sync/errgroup",
		`var n int; func f() { n++ }`:                               "f writes n",
		`var m = map[int]int{}; func f() { m[1] = 2 }`:              "f writes m",
		`type t struct{ n int }; var v t; func f() { v.n += 1 }`:    "f writes v",
		`import "sync"; var n = sync.OnceValue(func() int { return 1 }); func f(m []int) { n := 1; n++; m[0] = n }`: "",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a; "+source, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(impure(map[string]*ast.File{"a.go": file}), "\n")
		if want != "" {
			want = "a.go: " + want
		}
		if got != want {
			t.Errorf("%s\ngot  %q\nwant %q", source, got, want)
		}
	}
}
