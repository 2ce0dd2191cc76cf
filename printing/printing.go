// Package printing makes text of what others wrote: whatever a stranger's path, a zone's label or a server's error holds, it moves no
// cursor, rings no bell, reverses no line and hides nothing where people read it. It imports nothing of ours, so that whatever
// prints can use it.
package printing

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// unsafe reports whether a character does something else than to be seen: controls of both sets, what reorders or joins text,
// has no width, or begins another line in secret. Tabs and ends of lines are for the caller.
func unsafe(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' && r != '\n' && r != '\t' || r == 0x7f
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Safe reports whether s may be shown as it is.
func Safe(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, unsafe) < 0
}

// Text is s with whatever is not to be shown escaped, as in JSON: \u001b. Bytes that are no UTF-8 are \xNN.
func Text(s string) string {
	if Safe(s) {
		return s
	}
	return string(escaped([]byte(s), asJSON))
}

// Line is Text in one line without tabs: for cells of tables, whose borders these are.
func Line(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Text(s))
}

// YAML escapes what is not to be shown in a document of YAML. Strings that have any of it must be in double quotes there.
func YAML(doc []byte) []byte {
	return escaped(doc, asYAML)
}

// JSON escapes what is not to be shown in a document of JSON, which means the same afterwards: people read answers in terminals, too.
func JSON(doc []byte) []byte {
	plain := !slices.ContainsFunc(doc, func(b byte) bool { return b >= 0x7f })
	if plain || !utf8.Valid(doc) {
		return doc
	}
	return escaped(doc, asJSON)
}

func asJSON(out []byte, r rune) []byte {
	if r > 0xffff {
		r -= 0x10000
		return fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
	}
	return fmt.Appendf(out, `\u%04x`, r)
}

func asYAML(out []byte, r rune) []byte {
	if r > 0xffff {
		return fmt.Appendf(out, `\U%08x`, r)
	}
	return fmt.Appendf(out, `\u%04x`, r)
}

func escaped(text []byte, escape func([]byte, rune) []byte) (out []byte) {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			out = fmt.Appendf(out, `\x%02x`, text[0])
		case unsafe(r):
			out = escape(out, r)
		default:
			out = append(out, text[:size]...)
		}
		text = text[size:]
	}
	return out
}

// Writer passes text on, escaped as by Text. What stands in strings of JSON remains the same JSON. It may be used by several
// goroutines, each of whose writes stays whole.
type Writer struct {
	mu   sync.Mutex
	to   io.Writer
	rest []byte // of a character whose end comes with the next write; guarded by mu
}

// NewWriter returns a writer in front of w.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w} }

// Write never reports fewer bytes than it was given, unless the writer behind it fails.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := p
	if len(w.rest) > 0 {
		text = append(bytes.Clone(w.rest), p...)
	}
	whole := len(text) - unfinished(text)
	w.rest = bytes.Clone(text[whole:])
	if _, err := w.to.Write(clean(text[:whole])); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes what has no end; it does not close the writer behind.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.to.Write(clean(w.rest))
	w.rest = nil
	return err
}

func clean(text []byte) []byte {
	if utf8.Valid(text) && bytes.IndexFunc(text, unsafe) < 0 {
		return text
	}
	return escaped(text, asJSON)
}

// unfinished is how many bytes at the end may be the beginning of a character.
func unfinished(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if begin := text[len(text)-n:]; utf8.RuneStart(begin[0]) {
			if !utf8.FullRune(begin) {
				return n
			}
			return 0
		}
	}
	return 0
}
