package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
)

// functions returns the tests that rows may name, each with the text of what it uses: the declarations of its file, and
// of the one beside it that has its rows, as far as they lead from one to the next, and what these name in other files of
// the folder.
func functions(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, folder := range []string{"zone", "zone/xds", "test/e2e"} {
		files, err := filepath.Glob(filepath.Join("..", "..", folder, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", folder, err)
		}
		declared, whole := map[string]declarations{}, declarations{}
		for _, file := range files {
			declared[file] = declarationsOf(t, file)
			whole.add(declared[file])
		}
		for file, own := range declared {
			beside := strings.TrimSuffix(file, "_test.go") + "_rows_test.go" // what it goes through
			own = maps.Clone(own)
			own.add(declared[beside])
			for name := range declared[file] {
				if strings.HasPrefix(name, "Test") {
					out[name] = own.used(name, whole)
				}
			}
		}
	}
	return out
}

// declarations are the functions, methods, constants and variables of files, by name: the text of each.
type declarations map[string]string

func declarationsOf(t *testing.T, path string) declarations {
	t.Helper()
	text, files := read(t, path), token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := declarations{}
	add := func(name string, n ast.Node) {
		out[name] += text[files.Position(n.Pos()).Offset:files.Position(n.End()).Offset] + "\n"
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			add(d.Name.Name, d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, is := spec.(*ast.ValueSpec); is {
					for _, name := range v.Names {
						add(name.Name, v)
					}
				}
			}
		}
	}
	return out
}

func (d declarations) add(others declarations) {
	for name, text := range others {
		d[name] += text
	}
}

var identifier = regexp.MustCompile(`\b[A-Za-z]\w*\b`)

// used returns the text of a declaration and of all that it leads to, and one step further in the whole folder.
func (d declarations) used(name string, whole declarations) string {
	out, seen, next := "", map[string]bool{name: true}, []string{name}
	for len(next) > 0 {
		text := d[next[0]]
		out, next = out+text, next[1:]
		for _, word := range identifier.FindAllString(text, -1) {
			if !seen[word] {
				seen[word] = true
				if d[word] != "" {
					next = append(next, word)
				}
			}
		}
	}
	for word := range seen {
		if d[word] == "" && !strings.HasPrefix(word, "Test") {
			out += whole[word]
		}
	}
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestEachRowIsShown checks that each row of the page names an existing test that uses the type and the field: its name,
// and that of the object that it is in.
func TestEachRowIsShown(t *testing.T) {
	all := functions(t)
	rows := 0
	for _, table := range []struct {
		types []policyType
		shown map[resources.Type]shows
	}{{policyTypes, shownReceived}, {sentTypes, shownSent}, {[]policyType{gatewayType}, shownElsewhere}, {otherTypes, shownElsewhere}} {
		for _, p := range table.types {
			for _, f := range p.fields {
				rows++
				by := table.shown[p.Type].of(f.field)
				text, there := all[by]
				path := strings.Split(strings.ReplaceAll(f.field, "[]", ""), ".")
				missing := ""
				for _, name := range path[max(len(path)-2, 0):] {
					if !regexp.MustCompile(`\b` + name + `\b`).MatchString(text) {
						missing = name
					}
				}
				switch {
				case by == "":
					t.Errorf("%s: no test shows %s", p.Type, f.field)
				case !there:
					t.Errorf("%s: %s is shown by %s, which is nowhere", p.Type, f.field, by)
				case by == "TestEnvoyTakesAllThatIsGenerated":
					t.Errorf("%s: %s is only taken by an Envoy, which shows no effect", p.Type, f.field)
				case missing != "" || !strings.Contains(text, string(p.Type)):
					t.Errorf("%s: %s is shown by %s, which has no %s of a %s", p.Type, f.field, by, missing, p.Type)
				}
			}
			for beginning := range table.shown[p.Type] {
				if !used(table.shown[p.Type], beginning, p.fields) {
					t.Errorf("%s: no row begins with %q", p.Type, beginning)
				}
			}
		}
	}
	if rows < 250 {
		t.Errorf("%d rows", rows)
	}
}

// used reports whether a beginning decides for a row.
func used(s shows, beginning string, fields []policyField) bool {
	for _, f := range fields {
		if strings.HasPrefix(f.field, beginning) && s.of(f.field) == s[beginning] {
			return true
		}
	}
	return false
}

// TestEachPolicyTypeHasAllCells checks that each policy type in the registry has a table for each side that it
// configures, ten broken confs whose field is named, a conf of each list that is tested field by field, and a list that
// configures proxies.
func TestEachPolicyTypeHasAllCells(t *testing.T) {
	tables := func(types []policyType) map[resources.Type]bool {
		out := map[resources.Type]bool{}
		for _, p := range types {
			out[p.Type] = true
		}
		return out
	}
	received, sent, broken := tables(policyTypes), tables(sentTypes), brokenConfs(t)
	confs := map[resources.Type]map[string]any{}
	if err := yaml.Unmarshal([]byte(read(t, "../../zone/xds/testdata/enforced/confs.yaml")), &confs); err != nil {
		t.Fatal(err)
	}
	for _, typ := range []resources.Type{resources.TypeMeshGateway, resources.TypeHostnameGenerator} {
		if broken[typ] < 10 {
			t.Errorf("%s: %d broken ones in resources/testdata/broken.txtar, want 10", typ, broken[typ])
		}
	}
	for _, d := range resources.Descriptors() {
		if d.Policy == nil {
			continue
		}
		takes := resources.Enforced(d.Type)
		if !takes.To && !takes.From && !takes.Rules && !takes.Single {
			t.Errorf("%s configures no proxy", d.Type)
		}
		// docs/permissions.md is about MeshTrafficPermission; the fields of MeshAccessLog are the same on both sides.
		if takes.To && !sent[d.Type] && d.Type != resources.TypeMeshAccessLog {
			t.Errorf("%s: no table of what it does in to", d.Type)
		}
		if (takes.Rules || takes.Single) && !received[d.Type] && d.Type != resources.TypeMeshTrafficPermission {
			t.Errorf("%s: no table of what it does in rules or default", d.Type)
		}
		if broken[d.Type] < 10 {
			t.Errorf("%s: %d broken confs in resources/testdata/broken.txtar, want 10", d.Type, broken[d.Type])
		}
		if len(confs[d.Type]) == 0 {
			t.Errorf("%s: no conf in zone/xds/testdata/enforced/confs.yaml", d.Type)
		}
	}
}

// brokenConfs counts the different problems in specs of each type, each with its field.
func brokenConfs(t *testing.T) map[resources.Type]int {
	t.Helper()
	problem := regexp.MustCompile(`(?m)^(?:document \d+ \()?(\w+) [^:]*: ((?:spec|conf|selectors?)[.[]\S+): `)
	fields, out := map[string]bool{}, map[resources.Type]int{}
	for _, file := range txtar.Parse([]byte(read(t, "../../resources/testdata/broken.txtar"))).Files {
		if !strings.HasSuffix(file.Name, ".problems") {
			continue
		}
		for _, line := range strings.Split(string(file.Data), "\n") {
			if m := problem.FindStringSubmatch(line); m != nil && !fields[line] {
				fields[line] = true
				out[resources.Type(m[1])]++
			}
		}
	}
	return out
}
