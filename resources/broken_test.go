package resources_test

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/causeway-mesh/causeway/resources"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestBrokenDocuments reads each document of testdata/broken.txtar and compares the problems with the file of the same
// name that ends in `.problems`.
func TestBrokenDocuments(t *testing.T) {
	const file = "testdata/broken.txtar"
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	var documents []txtar.File
	for _, f := range archive.Files {
		if name, ok := strings.CutSuffix(f.Name, ".problems"); ok {
			want[name] = string(f.Data)
		} else {
			documents = append(documents, f)
		}
	}
	var out []txtar.File
	for _, f := range documents {
		t.Run(f.Name, func(t *testing.T) {
			got := strings.Join(problems(t, f.Data), "\n") + "\n"
			out = append(out, f, txtar.File{Name: f.Name + ".problems", Data: []byte(got)})
			if !*update && got != want[f.Name] {
				t.Errorf("problems differ (-want +got):\n%s", cmp.Diff(want[f.Name], got))
			}
		})
	}
	if *update {
		archive.Files = out
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// problems decodes and validates a body and returns its problems. It fails the test if there are none.
func problems(t *testing.T, body []byte) []string {
	t.Helper()
	home := resources.Home{Zone: "zone-1", Alone: true}
	docs, err := resources.DecodeDocuments(body, resources.DecodeOptions{})
	for _, r := range docs {
		err = errors.Join(err, resources.Validate(r, home))
	}
	if err == nil {
		t.Fatal("the document is not refused")
	}
	var many *resources.DocumentsError
	var one *resources.InvalidError
	switch {
	case errors.As(err, &many):
		var out []string
		for _, invalid := range many.Invalid {
			out = append(out, lines(invalid)...)
		}
		return out
	case errors.As(err, &one):
		return lines(one)
	}
	t.Fatalf("an error of another kind: %v", err)
	return nil
}

func lines(invalid *resources.InvalidError) []string {
	var out []string
	for _, p := range invalid.Problems {
		if p.Field == "" {
			out = append(out, "NO FIELD")
		}
		out = append(out, invalid.Subject()+": "+p.String())
	}
	return out
}
