package resources

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
	"unicode/utf8"
)

// FuzzParseJSON: the parser takes what encoding/json takes, but for repeated keys and what is over a limit, and both
// read the same.
func FuzzParseJSON(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,-2.5e+3,"x\u0041\n\ud83d\ude00",true,false,null,{}],"b":{}}`, `{"a":1}{"b":2}`, `{"a":[1,]}`, `{"a":1,}`, `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":"\x"}`,
		"{\"a\nb\":1}", `{"a":tru}`, `{"a":truefalse}`, `{"a":[`, `{"a"`, `{"a":`, `{a:1}`, `{"a":1 "b":2}`, "\ufeff{}", `{"a":1,"a":2}`, `{"a":"\ud800"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !utf8.Valid(data) {
			return // refused before
		}
		want, objects, wantErr := reference(data)
		if !objects {
			return // never a document; encoding/json takes "01" for two of them
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

// reference reads data with encoding/json and writes it in canonical form. objects says whether all of its values are.
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
