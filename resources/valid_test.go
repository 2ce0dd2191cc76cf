package resources_test

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/causeway-mesh/causeway/resources"
)

var aloneHome = resources.Home{Zone: "zone-1", Alone: true}

// validDocuments returns the documents of testdata/valid.txtar by name, and their golden files.
func validDocuments(t testing.TB) (*txtar.Archive, map[string][]byte, map[string]string) {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/valid.txtar")
	if err != nil {
		t.Fatal(err)
	}
	documents, stored := map[string][]byte{}, map[string]string{}
	for _, f := range archive.Files {
		if name, ok := strings.CutSuffix(f.Name, ".stored"); ok {
			stored[name] = string(f.Data)
		} else {
			documents[f.Name] = f.Data
		}
	}
	return archive, documents, stored
}

func decodeOne(t testing.TB, body []byte) *resources.Resource {
	t.Helper()
	docs, err := resources.DecodeDocuments(body, resources.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(docs) != 1 {
		t.Fatalf("want one resource, got %d", len(docs))
	}
	return docs[0]
}

func TestValidDocuments(t *testing.T) {
	archive, _, want := validDocuments(t)
	var out []txtar.File
	for _, f := range archive.Files {
		if strings.HasSuffix(f.Name, ".stored") {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			r := decodeOne(t, f.Data)
			if err := resources.Validate(r, aloneHome); err != nil {
				t.Fatal(err)
			}
			labelled := aloneHome.Labelled(r)
			if err := resources.Validate(labelled, aloneHome); err != nil {
				t.Errorf("with its computed labels it is refused: %v", err)
			}
			if err := resources.ValidateSpec(labelled); err != nil {
				t.Errorf("a peer's is refused: %v", err)
			}
			got := fmt.Sprintf("%s\n%v\n%s\n", labelled.Key, labelled.Labels, labelled.Spec.JSON())
			out = append(out, f, txtar.File{Name: f.Name + ".stored", Data: []byte(got)})
			if !*update && got != want[f.Name] {
				t.Errorf("stored form differs (-want +got):\n%s", cmp.Diff(want[f.Name], got))
			}
		})
	}
	if *update {
		archive.Files = out
		if err := os.WriteFile("testdata/valid.txtar", txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEncodeDecode checks that a resource encoded in any form decodes to the same resource.
func TestEncodeDecode(t *testing.T) {
	_, documents, _ := validDocuments(t)
	for name, body := range documents {
		t.Run(name, func(t *testing.T) { checkEncodeDecode(t, aloneHome.Labelled(decodeOne(t, body))) })
	}
}

func checkEncodeDecode(t testing.TB, r *resources.Resource) {
	t.Helper()
	universal := resources.AppendUniversal(nil, r)
	yaml, err := resources.EncodeYAML(universal)
	if err != nil {
		t.Fatal(err)
	}
	kubernetes := resources.AppendKubernetes(nil, r)
	kubernetesYAML, err := resources.EncodeYAML(kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	for form, body := range map[string][]byte{
		"JSON": universal, "indented": resources.Indent(universal), "YAML": yaml,
		"Kubernetes": kubernetes, "Kubernetes YAML": kubernetesYAML,
	} {
		got := decodeOne(t, body)
		want := r
		if strings.HasPrefix(form, "Kubernetes") && r.Mesh != "" && r.Labels[resources.LabelMesh] == "" {
			want = r.Clone() // this form has no other place for the mesh
			want.Labels[resources.LabelMesh] = r.Mesh
		}
		if got.Key != want.Key || !maps.Equal(got.Labels, want.Labels) || !got.Spec.Equal(want.Spec) {
			t.Errorf("%s: got %s %v %s, want %s %v %s\nfrom %s", form, got.Key, got.Labels, got.Spec.JSON(), want.Key,
				want.Labels, want.Spec.JSON(), body)
		}
	}
}

// TestCanonical checks that DecodeDocuments stores exactly the bytes that NewSpec produces, so that a copy equals its
// original.
func TestCanonical(t *testing.T) {
	_, documents, _ := validDocuments(t)
	for name, body := range documents {
		r := decodeOne(t, body)
		again, err := resources.NewSpec(r.Type, r.Spec.JSON())
		if err != nil || !again.Equal(r.Spec) {
			t.Errorf("%s: %s is not canonical, %s is (%v)", name, r.Spec.JSON(), again.JSON(), err)
		}
	}
}
