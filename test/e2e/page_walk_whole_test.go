package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestWalkIsWhole checks that TestWalk covers each route and command that changing.txt does not exempt.
func TestWalkIsWhole(t *testing.T) {
	t.Parallel()
	var left []string
	for _, fields := range lines(t, "changing.txt") {
		left = append(left, fields[0])
	}
	asked := map[string]bool{}
	mux := http.NewServeMux()
	for _, row := range api.Table() {
		mux.HandleFunc(row.Pattern, func(http.ResponseWriter, *http.Request) {})
	}
	for _, q := range questions(t) {
		asked[q.text] = true
		method, path, _ := strings.Cut(q.text, " ")
		path, _, _ = strings.Cut(path, " ")
		if !strings.HasPrefix(path, "/") {
			continue
		}
		r, err := http.NewRequestWithContext(t.Context(), method, "http://server"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, pattern := mux.Handler(r)
		asked[pattern] = true
	}
	needs := func(what string, has func(asked string) bool) {
		for q := range asked {
			if has(q) {
				return
			}
		}
		for _, one := range left {
			if one == what || strings.HasPrefix(what, one+" ") && strings.HasPrefix(one, "causewayctl") {
				return
			}
		}
		t.Errorf("%s is neither in questions.txt nor in changing.txt", what)
	}
	for _, row := range api.Table() {
		needs(row.Pattern, func(q string) bool { return q == row.Pattern })
	}
	for _, command := range commands(t) {
		needs(command, func(q string) bool { return q == command || strings.HasPrefix(q, command+" ") })
	}
}

// commands returns those of causewayctl that do something, from the reference.
func commands(t *testing.T) (all []string) {
	t.Helper()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, "docs", "reference", "causewayctl.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "## ")
		if !ok || name == "causewayctl" {
			continue
		}
		if n := len(all); n > 0 && strings.HasPrefix(name, all[n-1]+" ") {
			all = all[:n-1] // a group
		}
		all = append(all, name)
	}
	if len(all) < 30 {
		t.Fatalf("the reference has %d commands only", len(all))
	}
	return all
}
