package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestMetricsOfTheReference checks that docs/reference/metrics.md has the metrics of two servers, with type and help.
// The page is generated from the sources, which is an independent way to the same result.
func TestMetricsOfTheReference(t *testing.T) {
	t.Parallel()
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := startMesh(t, cluster.GlobalConfig{}, "zone-1")
	for _, s := range []*cluster.Server{m.global, m.zones["zone-1"]} {
		shown, err := s.Diagnostics(t.Context(), "/metrics")
		m.must(err)
		seen := 0
		help := ""
		for line := range strings.Lines(string(shown)) {
			if text, ok := strings.CutPrefix(line, "# HELP causeway_"); ok {
				_, help, _ = strings.Cut(strings.TrimSpace(text), " ")
			}
			rest, ok := strings.CutPrefix(line, "# TYPE causeway_")
			if !ok {
				continue
			}
			seen++
			name, kind, _ := strings.Cut(strings.TrimSpace(rest), " ")
			if !strings.Contains(string(page), "| `causeway_"+name+"` | "+kind+" |") ||
				!strings.Contains(string(page), "| "+help+" |\n") {
				t.Errorf("%s shows causeway_%s, a %s (%s): docs/reference/metrics.md says something else, or nothing",
					s.Name(), name, kind, help)
			}
		}
		if seen < 10 {
			t.Errorf("%s shows only %d metrics", s.Name(), seen)
		}
	}
}
