package xds

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	"github.com/causeway-mesh/causeway/resources"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden shows what each kind of inbound becomes, for people to read: testdata/<case>.yaml is a Dataplane.
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".golden.yaml") {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			got := rendered(t, file)
			golden := strings.TrimSuffix(file, ".yaml") + ".golden.yaml"
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("differs from %s (run with -update and look at the difference):\n%s", golden, got)
			}
		})
	}
}

func rendered(t *testing.T, file string) []byte {
	t.Helper()
	document, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	json, err := yaml.YAMLToJSON(document)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := resources.NewSpec(resources.TypeDataplane, json)
	if err != nil {
		t.Fatal(err)
	}
	target, err := newTarget(testHome.Labelled(&resources.Resource{Key: dataplaneKey("backend"), Spec: spec}),
		func(func(*resources.Resource) bool) {}, false)
	if err != nil {
		t.Fatal(err)
	}
	st, err := buildAll(target, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, k := range []kind{kindCluster, kindListener, kindRoute} { // filters have golden files of their own, in zone/rbac
		for _, r := range st.sets[k] {
			json, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(r.delta.Resource)
			if err != nil {
				t.Fatal(err)
			}
			text, err := yaml.JSONToYAML(json)
			if err != nil {
				t.Fatal(err)
			}
			out.WriteString("---\n")
			out.Write(text)
		}
	}
	return out.Bytes()
}
