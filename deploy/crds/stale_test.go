package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestDefinitionsAreFresh compares the files with what the code generates.
func TestDefinitionsAreFresh(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	want, err := definitions(root)
	if err != nil {
		t.Fatal(err)
	}
	have, err := filepath.Glob(filepath.Join(root, "deploy", "crds", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(have) != len(want) {
		t.Errorf("%d files for %d types: run go run ./deploy/crds", len(have), len(want))
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(root, "deploy", "crds", name))
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(string(got), string(text)); diff != "" {
			t.Errorf("%s is stale, run go run ./deploy/crds (-file +code):\n%s", name, diff)
		}
	}
}

// TestFieldsNameSomething finds lines of fields.txt about fields that no type has.
func TestFieldsNameSomething(t *testing.T) {
	described, err := fields()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, d := range resources.Descriptors() {
		known[string(d.Type)] = true
		for _, f := range resources.Fields(d.Type) {
			known[f.Origin] = true
			owner, _, _ := strings.Cut(f.Origin, ".")
			known[owner] = true
		}
	}
	for origin := range described {
		if !known[origin] {
			t.Errorf("fields.txt: no type has %s", origin)
		}
	}
}
