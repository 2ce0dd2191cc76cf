package proxypatch

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestJSONPatches: operations on JSON, as Kuma's have them.
func TestJSONPatches(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ doc, patches, want string }{
		{`{"a":1}`, `[{"op":"add","path":"/b","value":2}]`, `{"a":1,"b":2}`},
		{`{"a":1}`, `[{"op":"add","path":"/b/c/0/d","value":2}]`, `{"a":1,"b":{"c":[{"d":2}]}}`},
		{`{"a":[1,3]}`, `[{"op":"add","path":"/a/1","value":2}]`, `{"a":[1,2,3]}`},
		{`{"a":[1,3]}`, `[{"op":"add","path":"/a/-","value":4}]`, `{"a":[1,3,4]}`},
		{`{"a":[1,3]}`, `[{"op":"replace","path":"/a/-1","value":4}]`, `{"a":[1,4]}`},
		{`{"a":[1,3]}`, `[{"op":"remove","path":"/a/0"}]`, `{"a":[3]}`},
		{`{"a":1}`, `[{"op":"remove","path":"/b/c"}]`, `{"a":1}`},
		{`{"a":{"b":1}}`, `[{"op":"move","from":"/a/b","path":"/c"}]`, `{"a":{},"c":1}`},
		{`{"a":{"b":[1]}}`, `[{"op":"copy","from":"/a","path":"/c"},{"op":"add","path":"/c/b/-","value":2}]`, `{"a":{"b":[1]},"c":{"b":[1,2]}}`},
		{`{"a/b":1,"c~d":2}`, `[{"op":"replace","path":"/a~1b","value":3},{"op":"replace","path":"/c~0d","value":4}]`, `{"a/b":3,"c~d":4}`},
		{`{"n":12345678901234567890}`, `[{"op":"add","path":"/a","value":1}]`, `{"a":1,"n":12345678901234567890}`},
		{`{"a":1}`, `[{"op":"replace","path":"/b","value":2}]`, `not there`},
		{`{"a":1}`, `[{"op":"move","from":"/b","path":"/a"}]`, `not there`},
		{`{"a":1}`, `[{"op":"add","path":"/a/b","value":2}]`, `neither an object nor a list`},
		{`{"a":[1]}`, `[{"op":"add","path":"/a/7","value":2}]`, `not a place in a list of 1`},
		{`{"a":1}`, `[{"op":"add","path":"a","value":2}]`, `not a JSON pointer`},
		{`{"a":1}`, `[{"op":"test","path":"/a","value":1}]`, `unknown op`},
	} {
		var patches []JSONPatch
		if err := json.Unmarshal([]byte(row.patches), &patches); err != nil {
			t.Fatal(err)
		}
		doc, err := decodeJSON([]byte(row.doc))
		for i := range patches {
			if err == nil {
				doc, err = patches[i].apply(doc, newBudget())
			}
		}
		got, _ := json.Marshal(doc)
		if err != nil {
			got = []byte(err.Error())
		}
		if string(got) != row.want && (err == nil || !strings.Contains(string(got), row.want)) {
			t.Errorf("%s with %s is %s, want %s", row.doc, row.patches, got, row.want)
		}
	}
}

// FuzzPatches: no conf that a peer can send makes a panic, and what is applied twice is applied to the same.
func FuzzPatches(f *testing.F) {
	f.Add(`{"appendModifications":[{"cluster":{"operation":"Patch","jsonPatches":[{"op":"move","from":"/a/b","path":"/-"}]}}]}`)
	f.Add(`{"appendModifications":[{"httpFilter":{"operation":"AddLast","value":"{name: a, typed_config: {}}"}}]}`)
	f.Add(`{"appendModifications":[{"listener":{"operation":"Add","value":"&a [*a]"},"cluster":null}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var conf Conf
		if json.Unmarshal([]byte(text), &conf) != nil {
			return
		}
		_, _ = conf.Read(true)
		edits, wrong := conf.Read(false)
		if len(wrong) > 0 {
			return
		}
		empty := &Config{Clusters: map[string]*Resource{}, Listeners: map[string]*Resource{}, Routes: map[string]*Resource{}}
		next, err := empty.Apply("p", edits)
		if err == nil {
			_ = (&Guard{Original: empty}).Check(empty, next)
		}
	})
}
