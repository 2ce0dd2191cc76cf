package resources

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"unicode/utf8"
)

// FuzzParseJSON checks that the parser accepts what encoding/json accepts, except for repeated keys and exceeded
// limits, and that both read the same values.
func FuzzParseJSON(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,-2.5e+3,"x\u0041\n\ud83d\ude00",true,false,null,{}],"b":{}}`, `{"a":1}{"b":2}`, `{"a":[1,]}`, `{"a":1,}`, `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":"\x"}`,
		"{\"a\nb\":1}", `{"a":tru}`, `{"a":truefalse}`, `{"a":[`, `{"a"`, `{"a":`, `{a:1}`, `{"a":1 "b":2}`, "\ufeff{}", `{"a":1,"a":2}`, `{"a":"\ud800"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !utf8.Valid(data) {
			return // refused before parsing
		}
		want, objects, wantErr := reference(data)
		if !objects {
			return // never a document; encoding/json reads "01" as two numbers
		}
		docs, err := parseJSON(data)
		if err != nil {
			if wantErr == nil && !bytes.Contains([]byte(err.Error()), []byte("twice")) && !bytes.Contains([]byte(err.Error()), []byte("more than")) &&
				!bytes.Contains([]byte(err.Error()), []byte("deeper")) {
				t.Fatalf("%q is refused: %v", data, err)
			}
			return
		}
		if wantErr != nil {
			t.Fatalf("%q is taken, which encoding/json refuses: %v", data, wantErr)
		}
		var got []byte
		for _, n := range docs {
			got = append(n.appendJSON(got), '\n')
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%q: got %s, want %s", data, got, want)
		}
	})
}

// reference reads data with encoding/json and returns it in canonical form. objects reports whether all of its values
// are objects.
func reference(data []byte) (canonical []byte, objects bool, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for {
		var v any
		err := dec.Decode(&v)
		if err == io.EOF {
			return out.Bytes(), true, nil
		}
		if err != nil {
			return nil, true, err
		}
		if _, ok := v.(map[string]any); !ok {
			return nil, false, nil
		}
		if err := enc.Encode(v); err != nil {
			return nil, true, err
		}
	}
}
