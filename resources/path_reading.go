package resources

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// RE2 expressions for the parts of a path that applications drop. They match paths as Envoy forwards them, and need
// `(?i)`.
const (
	// PathBlanks matches blanks around a segment, escaped.
	PathBlanks = `(?:%20|%c2%a0|%e3%80%80)*`
	// PathTrail matches dots and blanks after a segment, which Windows cuts off.
	PathTrail = `(?:\.|%20|%c2%a0|%e3%80%80)*`
	// pathParameter matches a parameter of a segment. Its semicolon may be escaped, or full-width. The expression lists
	// the characters, because a class that excludes a few characters is slow to print.
	pathParameter = `(?:(?:;|%3b|%ef%bc%9b)(?-i:[!-.0->@-~]*))?`
	// pathEmpty matches an empty segment, with the slash after it.
	pathEmpty = PathTrail + pathParameter + `/`
	// PathRoot matches the slash at the start of a path, and empty segments.
	PathRoot = `/(?:` + pathEmpty + `)*` + PathBlanks
	// PathSeparator matches the slashes between two segments, or at the start of a path.
	PathSeparator = `(?:` + pathEmpty + `)+` + PathBlanks
	// pathEnds matches characters at which an application may consider the path to end.
	pathEnds = `[?;#]|%3[bf]|%23|%ef%bc%(?:9[bf]|83)`
	// PathExtension matches the extension of a file, such as `.json`. An extension that begins with a digit is more
	// likely a version, such as `/v1.1`, and does not match.
	PathExtension = `(?:\.[^0-9/?][^/?]*)?`
	// PathNothing matches the text that may follow a path without making it another path.
	PathNothing = PathTrail + PathExtension + `(?:/` + PathTrail + pathParameter + `)*(?:(?:` + pathEnds + `)(?s:.*))?`
	// PathOnlyRoot matches the root, with empty segments.
	PathOnlyRoot = `/(?:` + pathEmpty + `)*` + PathTrail + `(?:(?:` + pathEnds + `)(?s:.*))?`
	// PathAnything matches the text that may follow a path prefix.
	PathAnything = PathTrail + PathExtension + `(?:(?:/|` + pathEnds + `)(?s:.*))?`
)

// The full-width forms of ASCII characters. Unicode has them in ASCII's order, and normalisation converts them to
// ASCII.
const (
	fullWidthFirst  = 0xff01
	fullWidthLast   = 0xff5e
	fullWidthOffset = 0xff01 - '!'
)

// FoldPathRune returns one character for all those that an application treats as equal if it ignores case and width.
func FoldPathRune(r rune) rune {
	switch {
	case fullWidthFirst <= r && r <= fullWidthLast:
		r -= fullWidthOffset
	case r == 'ı' || r == 'İ':
		r = 'i'
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}

// PathRuneSpellings returns an expression, for `(?i)`, that matches all spellings in a path of a character and of those
// that fold to the same character.
func PathRuneSpellings(r rune) string {
	var out []string
	least := FoldPathRune(r)
	orbit := []rune{least}
	for next := unicode.SimpleFold(least); next != least; next = unicode.SimpleFold(next) {
		orbit = append(orbit, next)
	}
	if least == 'I' {
		orbit = append(orbit, 'ı', 'İ')
	}
	for i, c := range orbit {
		if c < 0x80 && i == 0 { // (?i) matches its other case
			out = append(out, regexp.QuoteMeta(strings.ToLower(string(c))))
		}
		out = append(out, escaped(c))
		if '!' <= c && c <= '~' {
			out = append(out, escaped(c+fullWidthOffset))
		}
	}
	return "(?:" + strings.Join(out, "|") + ")"
}

// escaped returns the percent-encoding of a character, in lower case.
func escaped(r rune) string {
	var out strings.Builder
	for _, b := range []byte(string(r)) {
		fmt.Fprintf(&out, "%%%02x", b)
	}
	return out.String()
}
