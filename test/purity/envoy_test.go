package purity

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestOneFunctionFindsEnvoy checks that no test beside the code looks for Envoy by itself: programtest.Envoy tells the
// go command that a result holds for the Envoy that is there now.
func TestOneFunctionFindsEnvoy(t *testing.T) {
	t.Parallel()
	names, looked := regexp.MustCompile(`"ENVOY"|\.tools`), 0
	for _, files := range testFiles(t) {
		for _, file := range files {
			if strings.HasPrefix(file, "test/") && !strings.HasPrefix(file, "test/abuse/") {
				continue // cluster.FindEnvoy looks at the file, too
			}
			looked++
			raw, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				t.Fatal(err)
			}
			if found := names.Find(raw); found != nil && file != "test/abuse/front_test.go" { // which looks at HAProxy and nginx
				t.Errorf("%s has %s: call programtest.Envoy", file, found)
			}
		}
	}
	if looked < 100 {
		t.Errorf("%d files were looked at", looked)
	}
}
