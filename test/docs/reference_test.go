package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestReferenceIsUpToDate checks that docs/reference matches the code and contains nothing else.
func TestReferenceIsUpToDate(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	want, err := pages(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(root, folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != text {
			t.Errorf("%s/%s is not what the code says: run make docs, and read the difference", folder, name)
		}
	}
	there, err := os.ReadDir(filepath.Join(root, folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range there {
		if _, ok := want[f.Name()]; !ok {
			t.Errorf("%s/%s is written by nobody: remove it", folder, f.Name())
		}
	}
}

// TestSchemasOfThePage checks that the page completes documents by the schemas that decode them.
func TestSchemasOfThePage(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	want, err := schemasOfPage(root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, schemasFile))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the code says: run make docs", schemasFile)
	}
}
