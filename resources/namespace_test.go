package resources_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/causeway-mesh/causeway/resources"
)

// TestNamespaces runs testdata/namespace.txtar. For each document it checks the role and the explicit form, or the
// reason why it is refused.
func TestNamespaces(t *testing.T) {
	const file = "testdata/namespace.txtar"
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	var documents, out []txtar.File
	for _, f := range archive.Files {
		if name, ok := strings.CutSuffix(f.Name, ".want"); ok {
			want[name] = string(f.Data)
		} else {
			documents = append(documents, f)
		}
	}
	for _, f := range documents {
		t.Run(f.Name, func(t *testing.T) {
			got := namespaceText(t, f)
			out = append(out, f, txtar.File{Name: f.Name + ".want", Data: []byte(got)})
			if !*update && got != want[f.Name] {
				t.Errorf("(-want +got):\n%s", cmp.Diff(want[f.Name], got))
			}
		})
	}
	if len(documents) < 60 {
		t.Errorf("only %d documents", len(documents))
	}
	if *update {
		archive.Files = out
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func namespaceText(t *testing.T, f txtar.File) string {
	t.Helper()
	home := resources.Home{Zone: "zone-1"}
	if _, at, ok := strings.Cut(strings.TrimSuffix(f.Name, ".yaml"), "@"); ok {
		home.Zone = strings.TrimPrefix(at, "global")
	}
	r := decodeOne(t, f.Data)
	var invalid *resources.InvalidError
	if err := resources.Validate(r, home); errors.As(err, &invalid) {
		return strings.Join(lines(invalid), "\n") + "\n"
	} else if err != nil {
		t.Fatal(err)
	}
	stored := home.Labelled(r)
	if err := resources.ValidateSpec(stored); err != nil {
		t.Errorf("a peer's is refused: %v", err)
	}
	explicit, err := resources.Explicit(stored, resources.DefaultSystemNamespace)
	if err != nil {
		t.Fatal(err)
	}
	checkExplicit(t, stored, explicit, home)
	text := fmt.Sprintf("role: %s\n%s\n", stored.Labels[resources.LabelPolicyRole], explicit.Spec.JSON())
	for _, warning := range resources.Warnings(stored) {
		text += "warning: " + warning + "\n"
	}
	return text
}

// checkExplicit checks that the explicit form is valid, has the role of the stored form, and is its own explicit form.
func checkExplicit(t testing.TB, stored, explicit *resources.Resource, home resources.Home) {
	t.Helper()
	if err := resources.Validate(explicit, home); err != nil {
		t.Errorf("the explicit form is refused: %v", err)
	}
	if before, after := resources.RoleOf(stored, resources.DefaultSystemNamespace),
		resources.RoleOf(explicit, resources.DefaultSystemNamespace); before != after {
		t.Errorf("the explicit form is a %s policy, the stored one a %s policy", after, before)
	}
	again, err := resources.Explicit(explicit, resources.DefaultSystemNamespace)
	if err != nil {
		t.Fatal(err)
	}
	if !again.Spec.Equal(explicit.Spec) {
		t.Errorf("not idempotent: %s becomes %s", explicit.Spec.JSON(), again.Spec.JSON())
	}
}
