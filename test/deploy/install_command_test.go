package deploy

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// TestHelmInstallsTheSame compares what causewayctl install prints with helm's output for the same chart and values.
func TestHelmInstallsTheSame(t *testing.T) {
	for values, chart := range cases(t) {
		kind := strings.TrimPrefix(chart, "causeway-")
		printed := output(t, filepath.Join(programs(), "causewayctl"), "install", kind, "--name", "mesh", "--namespace", "causeway", "--values", values)
		rendered, err := os.ReadFile(golden(values))
		must(t, err)
		got, want := documents(t, strings.ReplaceAll(printed, "managed-by: causewayctl", "managed-by: Helm")), documents(t, string(rendered))
		delete(got, "Namespace causeway") // helm leaves it to the caller
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: causewayctl install differs from helm (-helm +causewayctl):\n%s", values, diff)
		}
	}
}

// documents returns the documents of YAML by kind and name.
func documents(t *testing.T, text string) map[string]any {
	t.Helper()
	all := map[string]any{}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var one map[string]any
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		metadata, _ := one["metadata"].(map[string]any)
		all[one["kind"].(string)+" "+metadata["name"].(string)] = one
	}
}
