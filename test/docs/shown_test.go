package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
)

// functions are the tests that rows may name, each with the text of its file, and of the one beside it that has its rows.
func functions(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	for _, folder := range []string{"zone", "zone/xds", "test/e2e"} {
		files, err := filepath.Glob(filepath.Join("..", "..", folder, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", folder, err)
		}
		for _, file := range files {
			text := read(t, file)
			rows, err := filepath.Glob(strings.TrimSuffix(file, "_test.go") + "_rows_test.go") // what it goes through
			if err != nil {
				t.Fatal(err)
			}
			for _, beside := range rows {
				text += read(t, beside)
			}
			for _, m := range declared.FindAllStringSubmatch(text, -1) {
				out[m[1]] = text
			}
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

// TestEachRowIsShown checks that each row of the page names an existing test whose file contains the type and the
// field.
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
				leaf := strings.TrimSuffix(f.field[strings.LastIndexByte(f.field, '.')+1:], "[]")
				switch {
				case by == "":
					t.Errorf("%s: no test shows %s", p.Type, f.field)
				case !there:
					t.Errorf("%s: %s is shown by %s, which is nowhere", p.Type, f.field, by)
				case by == "TestEnvoyTakesAllThatIsGenerated":
					t.Errorf("%s: %s is only taken by an Envoy, which shows no effect", p.Type, f.field)
				case !regexp.MustCompile(`\b`+leaf+`\b`).MatchString(text) || !strings.Contains(text, string(p.Type)):
					t.Errorf("%s: %s is shown by %s, whose file has no %s of a %s", p.Type, f.field, by, leaf, p.Type)
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
