package rbac_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/zone/matching"
	"github.com/causeway-mesh/causeway/zone/rbac"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden compares the filters of each inbound with the golden file beside the input.
func TestGolden(t *testing.T) {
	t.Parallel()
	inputs := goldenInputs(t)
	for _, input := range inputs {
		t.Run(filepath.Base(input), func(t *testing.T) {
			got := goldenOf(t, input)
			file := strings.TrimSuffix(input, ".yaml") + ".golden.yaml"
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v (run with -update to write it)", err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s differs (run with -update if it should):\n%s", file, diff)
			}
		})
	}
}

func goldenInputs(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range all {
		if !strings.HasSuffix(f, ".golden.yaml") && f != "testdata/backend.yaml" {
			out = append(out, f)
		}
	}
	if len(out) < 15 {
		t.Fatalf("only %d inputs in testdata", len(out))
	}
	return out
}

// goldenOf writes the filters of every inbound as Envoy reads them.
func goldenOf(t *testing.T, input string) []byte {
	t.Helper()
	sections := map[string]any{}
	for section, in := range loadInbounds(t, input) {
		filters := map[string]any{}
		if in.protocol == matching.HTTP {
			filters["http"] = asMap(t, decoded(rbac.List.HTTPFilter(in.rules)))
			c := rbac.ClassicFilters(in.rules)
			filters["classic-deny"], filters["classic-allow"] = asMap(t, c.Deny), asMap(t, c.Allow)
		} else {
			dryrun, enforced := rbac.List.NetworkFilters(in.rules, section+".")
			filters["network-dryrun"], filters["network-enforced"] = asMap(t, decoded(dryrun)), asMap(t, decoded(enforced))
		}
		var warnings, classic []string
		for _, w := range append(in.rules.Warnings, rbac.Warnings(in.rules, in.protocol)...) {
			warnings = append(warnings, w.String())
		}
		if warnings != nil {
			filters["warnings"] = warnings
		}
		if in.protocol == matching.HTTP {
			for _, w := range rbac.ClassicWarnings(in.rules) {
				classic = append(classic, w.String())
			}
		}
		if classic != nil {
			filters["classic-warnings"] = classic
		}
		sections[section] = filters
	}
	out, err := yaml.Marshal(sections)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func asMap(t *testing.T, m proto.Message) map[string]any {
	t.Helper()
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := yaml.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
