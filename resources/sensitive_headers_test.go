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
