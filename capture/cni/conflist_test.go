package cni

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

const (
	bridge = `{"type": "bridge", "bridge": "cni0"}`
	entry  = `{"type":"causeway-cni","capabilities":{"io.kubernetes.cri.pod-annotations":true},"except":["kube-system"]}`
)

func entryFor(t testing.TB, except ...string) []byte {
	t.Helper()
	out, err := entryOf(except)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestList adds the entry to lists and removes it: all else stays as it is.
func TestList(t *testing.T) {
	ours := entryFor(t, "kube-system")
	if string(ours) != entry {
		t.Fatalf("the entry is %s", ours)
	}
	for _, c := range []struct{ name, before, with, without string }{
		{"one plugin", `{"name": "pods", "plugins": [` + bridge + `]}`, `{"name": "pods", "plugins": [` + bridge + ",\n" + entry + `]}`, ""},
		{"lines and order stay", "{\n  \"plugins\": [\n    " + bridge + ",\n    {\"type\": \"portmap\"}\n  ],\n  \"x\": 1.50,\n  \"name\": \"pods\"\n}\n",
			"{\n  \"plugins\": [\n    " + bridge + ",\n    {\"type\": \"portmap\"},\n" + entry + "\n  ],\n  \"x\": 1.50,\n  \"name\": \"pods\"\n}\n", ""},
		{"it is there", `{"plugins": [` + bridge + `, ` + entry + `]}`, `{"plugins": [` + bridge + `, ` + entry + `]}`, `{"plugins": [` + bridge + `]}`},
		{"another comes after it", `{"plugins": [` + bridge + `,` + entry + `,{"type": "b"}]}`, `{"plugins": [` + bridge + `,` + entry + `,{"type": "b"}]}`,
			`{"plugins": [` + bridge + `,{"type": "b"}]}`},
		{"of another version", `{"plugins": [` + bridge + `,{"type": "causeway-cni", "old": [1, {"a": "]"}]}, {"type": "b"}]}`,
			`{"plugins": [` + bridge + `, {"type": "b"},` + "\n" + entry + `]}`, `{"plugins": [` + bridge + `, {"type": "b"}]}`},
		{"twice", `{"plugins": [` + bridge + `,` + entry + `,` + entry + `]}`, `{"plugins": [` + bridge + ",\n" + entry + `]}`, `{"plugins": [` + bridge + `]}`},
	} {
		got, err := with([]byte(c.before), ours)
		if err != nil || string(got) != c.with {
			t.Errorf("%s: with it: %v\n%s", c.name, err, got)
		}
		if c.without == "" {
			c.without = c.before
		}
		if got, err = without(got); err != nil || string(got) != c.without {
			t.Errorf("%s: without it: %v\n%s", c.name, err, got)
		}
	}
	for _, c := range []struct{ text, want string }{
		{``, "want a JSON object"}, {`[]`, "want a JSON object"}, {`{"type": "bridge"}`, "no plugins"}, {`{"plugins": []}`, "no plugins"},
		{`{"plugins": {}}`, "plugins: want a list"}, {`{"plugins": [{}]}`, "plugins: entry 1 has no type"}, {`{"plugins": [` + bridge, "EOF"},
		{`{"plugins": [` + bridge + `], "plugins": [` + bridge + `]}`, "plugins twice"}, {`{"plugins": [` + bridge + `]} {}`, "more than one"},
		{`{"plugins": [` + entry + `, ` + bridge + `]}`, "is its first plugin"}, {`{"plugins": [` + bridge + `], "a": tru}`, "invalid character"},
	} {
		if got, err := with([]byte(c.text), ours); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q: %s", c.text, err, c.want, got)
		}
	}
}

// FuzzList: a list that takes the entry has it once, and has everything else as before; without it, it is the same text.
func FuzzList(f *testing.F) {
	for _, text := range []string{`{"plugins": [` + bridge + `]}`, `{"a":"\"}]","plugins":[{"type":"x","y":[{}]} , ` + entry + ` ],"b":{}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ours := entryFor(t, "a")
		got, err := with(text, ours)
		if err != nil {
			return
		}
		var was, is map[string]json.RawMessage
		var before, after []struct{ Type string }
		for _, part := range []struct {
			text []byte
			into any
		}{{text, &was}, {got, &is}} {
			if err := json.Unmarshal(part.text, part.into); err != nil {
				t.Fatalf("%s: %v", part.text, err)
			}
		}
		_ = json.Unmarshal(was["plugins"], &before)
		_ = json.Unmarshal(is["plugins"], &after)
		if bytes.Count(got, ours) != 1 || count(after) != 1 || len(after)-1 != len(before)-count(before) {
			t.Errorf("%s becomes %s", text, got)
		}
		delete(was, "plugins")
		delete(is, "plugins")
		if !reflect.DeepEqual(was, is) {
			t.Errorf("%s becomes %s", text, got)
		}
		back, err := without(got)
		if err != nil || count(before) == 0 && !bytes.Equal(back, text) {
			t.Errorf("%s becomes %s and then %s: %v", text, got, back, err)
		}
	})
}

func count(plugins []struct{ Type string }) (n int) {
	for _, p := range plugins {
		if p.Type == Name {
			n++
		}
	}
	return n
}
