package resources

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestASpecIsReadForEachSecretHeader: a spec that names a header with a credential, however it is spelt, is read for its
// secrets.
func TestASpecIsReadForEachSecretHeader(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom(secretHeaders).Draw(t, "part")
		name := rapid.StringMatching(`[a-zA-Z0-9_-]{0,5}`).Draw(t, "before") + strings.TrimSuffix(part, "-") +
			rapid.StringMatching(`([_-][a-zA-Z0-9\\"<>é]{0,5})?`).Draw(t, "after")
		if rapid.Bool().Draw(t, "underscores") {
			name = strings.ReplaceAll(name, "-", "_")
		}
		if rapid.Bool().Draw(t, "capitals") {
			name = strings.ToUpper(name)
		}
		if rapid.Bool().Draw(t, "kelvin") { // its lower case is k
			name = strings.ReplaceAll(name, "k", "\u212a")
		}
		if !secretHeader(name) {
			t.Fatalf("%q is no secret header", name)
		}
		raw := appendString([]byte(`{"requestHeaderModifier":{"set":[{"name":`), name)
		raw = append(raw, `,"value":"v"}]}}`...)
		if !anywhere().hinted(raw) {
			t.Fatalf("%s is not read", raw)
		}
	})
	for raw, want := range map[string]bool{
		`{"requestHeaderModifier":{"set":[{"name":"x-bench","value":"w"}]}}`: false,
		`{"requestHeaderModifier":{"set":[{"name":"X_AUTH","value":"w"}]}}`:  true,
	} {
		if got := anywhere().hinted([]byte(raw)); got != want {
			t.Errorf("%s: %t, want %t", raw, got, want)
		}
	}
}

// TestASpecIsReadForEachSource: a spec with a source of a secret is read for it, whatever holds the value; one without
// is not decoded.
func TestASpecIsReadForEachSource(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, d := range Descriptors() {
		if d.Sensitive == nil {
			continue
		}
		for _, path := range d.Sensitive.Sources {
			seen++
			raw := `{"x":"v"}`
			names := strings.Split(path, ".")
			for i := len(names) - 1; i >= 0; i-- {
				name, list := strings.CutSuffix(names[i], "[]")
				if list {
					raw = "[" + raw + "]"
				}
				raw = `{"` + name + `":` + raw + `}`
			}
			found := false
			_, err := EditSecrets(&Resource{Key: Key{Type: d.Type}, Spec: &Spec{raw: []byte(raw), make: d.newSpec}},
				func(_, value string) (string, error) {
					found = found || value == "v"
					return value, nil
				})
			if err != nil || !found {
				t.Errorf("%s: the value in %s is not found (%v)", d.Type, raw, err)
			}
		}
		if d.Sensitive.hinted([]byte(`{"conf":{"listeners":[{"port":80,"protocol":"HTTP"}]}}`)) {
			t.Errorf("%s: a spec without a secret is decoded", d.Type)
		}
	}
	if seen == 0 {
		t.Fatal("no type has a source")
	}
}
