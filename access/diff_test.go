package access_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestDifferences compares the differences of random specs with those of their decoded values.
func TestDifferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := object(3).Draw(t, "from"), object(3).Draw(t, "to")
		if rapid.Bool().Draw(t, "similar") {
			to = maps.Clone(from)
			to[rapid.SampledFrom(fieldNames).Draw(t, "changed")] = value(2).Draw(t, "value")
		}
		commit := &store.Commit{Changes: []store.Change{{Old: meshOf(t, from), New: meshOf(t, to)}}}
		got := map[string][2]string{}
		for _, f := range access.Changes(commit)[0].Diff {
			got[f.Path] = [2]string{string(f.From), string(f.To)}
			if f.Hidden {
				got[f.Path] = [2]string{"hidden", "hidden"}
			}
		}
		want := map[string][2]string{}
		decoded := func(r *resources.Resource) (v any) {
			if err := json.Unmarshal(r.Spec.JSON(), &v); err != nil {
				t.Fatal(err)
			}
			return v
		}
		differences(want, "spec", decoded(commit.Changes[0].Old), decoded(commit.Changes[0].New))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%v\n%v\nwant -, got +:\n%s", from, to, diff)
		}
	})
}

// TestDifferencesAreTakenAsTheyStand checks that the spec of a large new resource is not decoded.
func TestDifferencesAreTakenAsTheyStand(t *testing.T) {
	spec := map[string]any{}
	for i := range 100 {
		spec[fmt.Sprintf("field%d", i)] = []any{i, "text", map[string]any{"a": nil}}
	}
	commit := &store.Commit{Changes: []store.Change{{New: meshOf(t, spec)}}}
	if n := testing.AllocsPerRun(10, func() { _ = access.Changes(commit) }); n > 25 {
		t.Errorf("made %v objects, want at most 25", n)
	}
}

// differences is the plain implementation.
func differences(out map[string][2]string, path string, a, b any) {
	secret := path[strings.LastIndexByte(path, '.')+1:] == "token"
	x, isObject := a.(map[string]any)
	y, isToo := b.(map[string]any)
	list, isArray := a.([]any)
	other, isAlso := b.([]any)
	switch {
	case reflect.DeepEqual(a, b):
	case secret:
		out[path] = [2]string{"hidden", "hidden"}
	case isObject && isToo:
		for _, name := range slices.Compact(slices.Sorted(maps.Keys(x))) {
			differences(out, path+"."+name, x[name], y[name])
		}
		for name := range y {
			if _, both := x[name]; !both {
				differences(out, path+"."+name, nil, y[name])
			}
		}
	case isArray && isAlso && len(list) == len(other):
		for i := range list {
			differences(out, fmt.Sprintf("%s[%d]", path, i), list[i], other[i])
		}
	default:
		out[path] = [2]string{shown(a), shown(b)}
	}
}

func shown(v any) string {
	if v == nil {
		return ""
	}
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(masked(v)); err != nil {
		panic(err)
	}
	return strings.TrimSpace(out.String())
}

func masked(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, inner := range v {
			out[name] = masked(inner)
			if name == "token" {
				out[name] = "(hidden)"
			}
		}
		return out
	case []any:
		out := []any{}
		for _, inner := range v {
			out = append(out, masked(inner))
		}
		return out
	}
	return v
}

// fieldNames need escapes in JSON, sort unlike they look, or are secret.
var fieldNames = []string{"a", "b", "B", `q"uo,te`, `back\slash`, "ü", "<angle>", "token", "a.b", "emoji😀"}

func object(depth int) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(rapid.SampledFrom(fieldNames), value(depth-1), 0, 4)
}

func value(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.IntRange(0, 3).AsAny(),
		rapid.SampledFrom([]string{"", "x", `,"]}{[:\`, "</b>", "line\nbreak"}).AsAny(),
	}
	if depth > 0 {
		kinds = append(kinds, object(depth).AsAny(), rapid.SliceOfN(value(depth-1), 0, 3).AsAny())
	}
	return rapid.OneOf(kinds...)
}

func meshOf(t interface{ Fatal(...any) }, spec map[string]any) *resources.Resource {
	raw, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := resources.NewSpec(resources.TypeMesh, raw)
	if err != nil {
		t.Fatal(err)
	}
	return &resources.Resource{Key: resources.Key{Type: resources.TypeMesh, Name: "default"}, Spec: parsed}
}
