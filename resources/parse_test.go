package resources

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// FuzzParseJSON checks that the parser accepts what encoding/json accepts, except for repeated keys and exceeded
// limits, and that both read the same values.
func FuzzParseJSON(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,-2.5e+3,"x\u0041\n\ud83d\ude00",true,false,null,{}],"b":{}}`, `{"a":1}{"b":2}`, `{"a":[1,]}`,
		`{"a":1,}`, `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":"\x"}`,
		"{\"a\nb\":1}", `{"a":tru}`, `{"a":truefalse}`, `{"a":[`, `{"a"`, `{"a":`, `{a:1}`, `{"a":1 "b":2}`, "\ufeff{}",
		`{"a":1,"a":2}`, `{"a":"\ud800"}`,
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
			if wantErr == nil && !bytes.Contains([]byte(err.Error()), []byte("twice")) &&
				!bytes.Contains([]byte(err.Error()), []byte("more than")) &&
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

// TestTokensOfJSON checks that reading valid JSON without a json.Decoder yields the same tokens at the same positions.
func TestTokensOfJSON(t *testing.T) {
	kinds := []string{`null`, `true`, `false`, `0`, `-1.5e+3`, `""`, `"text"`, `",:]}{["`, `"\\"`, `"\"a\\\""`,
		`"\u0041\ud83d\ude00\ud800"`, `"ü\n"`}
	names := kinds[5:]
	blank := rapid.SampledFrom([]string{"", "", " ", "\n", "\t\r\n"})
	var value func(depth int) *rapid.Generator[string]
	value = func(depth int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			kind := rapid.IntRange(0, 2).Draw(t, "kind")
			if depth == 0 || kind == 0 {
				return rapid.SampledFrom(kinds).Draw(t, "value")
			}
			list := make([]string, rapid.IntRange(0, 3).Draw(t, "elements"))
			for i := range list {
				b := blank.Draw(t, "blank")
				if list[i] = b + value(depth-1).Draw(t, "value") + b; kind == 2 {
					list[i] = b + rapid.SampledFrom(names).Draw(t, "name") + b + ":" + list[i]
				}
			}
			return "[{"[kind-1:kind] + strings.Join(list, ",") + blank.Draw(t, "blank") + "]}"[kind-1:kind]
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		data := []byte(value(4).Draw(t, "json") + blank.Draw(t, "end"))
		got, isFast := tokensOf(data).(*validTokens)
		if !isFast {
			t.Fatalf("%q is read by a json.Decoder", data)
		}
		want := decodedTokens{json.NewDecoder(bytes.NewReader(data))}
		want.UseNumber()
		for {
			a, errA := want.token()
			b, errB := got.token()
			if a != b || !errors.Is(errB, errA) || errA == nil && want.InputOffset() != got.InputOffset() {
				t.Fatalf("%q: got %v (%v) up to %d, want %v (%v) up to %d", data, b, errB, got.InputOffset(), a, errA,
					want.InputOffset())
			}
			if errA != nil {
				return
			}
			if want.More() != got.More() {
				t.Fatalf("%q: more after %v at %d: %t, want %t", data, a, got.InputOffset(), got.More(), want.More())
			}
		}
	})
}

// TestParsingMakesLittle counts the allocations for a policy with five matchers.
func TestParsingMakesLittle(t *testing.T) {
	match := `{"spiffeID":{"type":"Prefix","value":"spiffe://default.zone.mesh.local/ns/n/sa/s"}}`
	doc := []byte(`{"type":"MeshTrafficPermission","mesh":"default","name":"p","spec":{"rules":[{"default":{"allow":[` +
		strings.Repeat(match+",", 4) + match + `]}}]}}`)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := parseJSON(doc); err != nil {
			t.Fatal(err)
		}
	}); n > 70 {
		t.Errorf("made %v objects, want at most 70", n)
	}
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
