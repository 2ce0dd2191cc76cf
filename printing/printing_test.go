package printing

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// nasty holds sequences that make text look different from what it is.
var nasty = []string{
	"\x1b[2J", "\x1b]0;title\x07", "\r", "\b\b\b", "\x00", "\x7f", "\u009b31m", "\u0085", "\u202e", "\u2066", "\u200b",
	"\u200d", "\ufeff",
	"\u2028", "\u2029", "\u061c", "\u00ad", "\U000e0041", "\xff", "\xc2", "\xe2\x80", "\x9b2J",
}

func TestNothingNastyIsShown(t *testing.T) {
	for _, one := range nasty {
		text := "before" + one + "after"
		for how, got := range map[string]string{"Text": Text(text), "Line": Line(text), "YAML": string(YAML([]byte(text)))} {
			if Safe(text) || !Safe(got) || !strings.HasPrefix(got, `before\`) || !strings.HasSuffix(got, "after") {
				t.Errorf("%s of %q: %q", how, text, got)
			}
		}
	}
	for _, plain := range []string{"", "a line\nand\tanother", "Zürich, 東京, 🙂", `C:\temp`} {
		if Text(plain) != plain {
			t.Errorf("%q became %q", plain, Text(plain))
		}
	}
	if got := Line("a\nb\tc"); got != `a\nb\tc` {
		t.Errorf("a line: %q", got)
	}
}

// FuzzWriter checks that the output is the same and safe however the text is split into writes, and that JSON keeps its
// meaning.
func FuzzWriter(f *testing.F) {
	for _, one := range nasty {
		f.Add("a"+one+"b", 2)
	}
	f.Fuzz(func(t *testing.T, text string, cut int) {
		whole, parts := write(t, text), ""
		if cut = min(max(cut, 0), len(text)); true {
			parts = write(t, text[:cut], text[cut:])
		}
		if whole != parts || !Safe(whole) || whole != Text(text) {
			t.Fatalf("%q: %q, in parts %q", text, whole, parts)
		}
		raw, err := json.Marshal(text)
		if err != nil || !utf8.ValidString(text) {
			return
		}
		var back string
		if err := json.Unmarshal([]byte(write(t, string(raw))), &back); err != nil || back != text {
			t.Fatalf("%q came back as %q: %v", text, back, err)
		}
	})
}

func write(t *testing.T, parts ...string) string {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out)
	for _, part := range parts {
		if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestJSONIsTheSameJSON checks that an answer keeps its meaning, and that no character of it affects a terminal.
func TestJSONIsTheSameJSON(t *testing.T) {
	for _, text := range []string{"plain", "żółw", "\x1b[2J", "\u009b2J", "a\u202eb", "\u2066x\u2069", "\u007f",
		"\U000e0041", "line\u2028two"} {
		raw, err := json.Marshal(map[string]string{"name": text, text: "key"})
		if err != nil {
			t.Fatal(err)
		}
		shown := JSON(raw)
		if !Safe(string(shown)) {
			t.Errorf("%q is shown as %q", text, shown)
		}
		var back map[string]string
		if err := json.Unmarshal(shown, &back); err != nil || back["name"] != text {
			t.Errorf("%q comes back as %q (%v)", text, back["name"], err)
		}
	}
}
