package matching_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/causeway-mesh/causeway/zone/matching"
)

// mergeReference merges by the pseudocode of RFC 7396, and concatenates fields that begin with `append`.
func mergeReference(field string, target, patch any) any {
	if list, ok := patch.([]any); ok && strings.HasPrefix(field, "append") {
		have, _ := target.([]any)
		return append(append([]any{}, have...), list...)
	}
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out := map[string]any{}
	if t, ok := target.(map[string]any); ok {
		maps.Copy(out, t)
	}
	for k, v := range p {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = mergeReference(k, out[k], v)
		}
	}
	return out
}

func drawConf(t *rapid.T, depth int) map[string]any {
	conf := map[string]any{}
	for _, k := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "appendList", "http"}), 0, 4,
		rapid.ID).Draw(t, "fields") {
		switch n := rapid.IntRange(0, 5).Draw(t, "kind"); {
		case n == 0:
			conf[k] = nil
		case n == 1:
			conf[k] = float64(rapid.IntRange(0, 9).Draw(t, "number"))
		case n <= 3:
			list := []any{}
			for _, v := range rapid.SliceOfN(rapid.IntRange(0, 9), 0, 3).Draw(t, "list") {
				list = append(list, float64(v))
			}
			conf[k] = list
		case depth < 3:
			conf[k] = drawConf(t, depth+1)
		}
	}
	return conf
}

// TestMergeAgreesWithReference compares the merge of random confs with the reference. The inputs stay unchanged.
func TestMergeAgreesWithReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want any = map[string]any{}
		var raw, before []json.RawMessage
		for range rapid.IntRange(0, 5).Draw(t, "confs") {
			conf := drawConf(t, 0)
			b, err := json.Marshal(conf)
			if err != nil {
				t.Fatal(err)
			}
			raw, before = append(raw, b), append(before, slices.Clone(b))
			want = mergeReference("", want, conf)
		}
		merged, err := matching.MergeConfs(raw...)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if err := json.Unmarshal(merged, &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(want, got) || !reflect.DeepEqual(raw, before) {
			t.Fatalf("%s:\n%s", raw, cmp.Diff(want, got))
		}
	})
}

// TestMergeKeepsNumbers: numbers that a float64 cannot represent are not rounded.
func TestMergeKeepsNumbers(t *testing.T) {
	got, err := matching.MergeConfs(json.RawMessage(`{"b":12345678901234567890,"a":1.50}`),
		json.RawMessage(`{"c":"<&>"}`), nil)
	if want := `{"a":1.50,"b":12345678901234567890,"c":"<&>"}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if _, err := matching.MergeConfs(json.RawMessage(`{} {}`)); err == nil {
		t.Error("two values are no conf")
	}
}
