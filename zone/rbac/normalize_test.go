package rbac_test

import (
	"os"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

// recordedPaths returns a real Envoy's answers, which TestEnvoyNormalisesPaths in package zone records.
func recordedPaths(t testing.TB) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("testdata/paths.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		if path, answer, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(line, "// ") {
			out[path] = answer
		}
	}
	if len(out) < 100 {
		t.Fatalf("only %d paths are recorded", len(out))
	}
	return out
}

// TestNormalizePath compares the function with the answers of a real Envoy.
func TestNormalizePath(t *testing.T) {
	t.Parallel()
	for path, want := range recordedPaths(t) {
		got, refused := rbac.NormalizePath(path)
		if refused != "" {
			got = "400"
		}
		if got != want {
			t.Errorf("%s: %s, Envoy says %s", path, got, want)
		}
	}
	for _, path := range []string{"", "a", "/a b", "/\x00", "/ä", "*", "http://backend/"} {
		if got, refused := rbac.NormalizePath(path); refused == "" {
			t.Errorf("%q: %q", path, got)
		}
	}
}

// FuzzNormalizePath checks that a normalised path contains nothing that an application would resolve differently
// without decoding it first, and that a path denied under its own name is denied in every spelling.
func FuzzNormalizePath(f *testing.F) {
	for path := range recordedPaths(f) {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, written string) {
		path, refused := rbac.NormalizePath(written)
		if refused != "" {
			return
		}
		plain, query, _ := strings.Cut(path, "?")
		if !strings.HasPrefix(plain, "/") || plain != "//" && strings.Contains(plain, "//") ||
			strings.ContainsAny(plain, "\\#") || strings.ContainsAny(query, "#") {
			t.Fatalf("%q became %q", written, path)
		}
		for _, segment := range strings.Split(plain, "/") {
			if segment == "." || segment == ".." {
				t.Fatalf("%q became %q", written, path)
			}
		}
		again, refused := rbac.NormalizePath(plain)
		if refused != "" || again != plain && !strings.Contains(plain, "/.;") && !strings.Contains(plain, "/..;") &&
			!strings.Contains(plain, "%") {
			t.Fatalf("%q became %q, and that %q %s", written, plain, again, refused)
		}
		_ = rbac.Evaluate(matching.Rules{}, rbac.Request{Protocol: matching.HTTP, URISANs: []string{"spiffe://a/b"},
			Method: "GET", Path: path})
	})
}
