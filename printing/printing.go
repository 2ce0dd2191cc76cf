// Package printing makes untrusted text safe to display. Whatever a stranger's path, a zone's label or a server's error
// contains, it moves no cursor, rings no bell, reverses no line and hides nothing from the reader. The package imports
// nothing of Causeway, so that all code that prints can use it.
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

// unsafe reports whether a character does anything other than show a glyph: control characters of both sets, and
// characters that reorder or join text, have no width, or start a new line invisibly. Tabs and newlines are left to the
// caller.
func unsafe(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' && r != '\n' && r != '\t' || r == 0x7f
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Safe reports whether s may be shown unchanged.
func Safe(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, unsafe) < 0
}

// Text returns s with unsafe characters escaped as in JSON: \u001b. Invalid UTF-8 bytes become \xNN.
func Text(s string) string {
	if Safe(s) {
		return s
	}
	return string(escaped([]byte(s), asJSON))
}

// Line returns Text(s) on one line without tabs, for table cells, which newlines and tabs delimit.
func Line(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Text(s))
}

// YAML escapes the unsafe characters in a YAML document. Strings that contain any must be in double quotes there.
func YAML(doc []byte) []byte {
	return escaped(doc, asYAML)
}

// JSON escapes the unsafe characters in a JSON document without changing its meaning, because people read answers in
// terminals too. It returns invalid UTF-8 unchanged.
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

// Writer forwards text, escaped as by Text. JSON keeps its meaning, because only characters in its strings are escaped.
// It is safe for concurrent use, and does not interleave writes.
type Writer struct {
	mu   sync.Mutex
	to   io.Writer
	rest []byte // the start of a character that the next write completes; guarded by mu
	err  error  // the first of the underlying writer; guarded by mu
}

// NewWriter returns a Writer that forwards to w.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w} }

// Write reports len(p) bytes written unless the underlying writer fails.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := p
	if len(w.rest) > 0 {
		text = append(bytes.Clone(w.rest), p...)
	}
	whole := len(text) - unfinished(text)
	w.rest = bytes.Clone(text[whole:])
	if err := w.forward(text[:whole]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// forward writes clean text; w.mu must be held.
func (w *Writer) forward(text []byte) error {
	_, err := w.to.Write(clean(text))
	if w.err == nil {
		w.err = err
	}
	return err
}

// Err returns the first error of the underlying writer: some of the output is missing.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Close writes an incomplete character, escaped. It does not close the underlying writer.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.forward(w.rest)
	w.rest = nil
	return err
}

func clean(text []byte) []byte {
	if utf8.Valid(text) && bytes.IndexFunc(text, unsafe) < 0 {
		return text
	}
	return escaped(text, asJSON)
}

// unfinished returns how many bytes at the end may be the start of a character.
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
