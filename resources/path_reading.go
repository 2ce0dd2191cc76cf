package resources

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// What applications drop from a path, as RE2 expressions for paths as Envoy forwards them. They are for `(?i)`.
const (
	// PathBlanks stand around a segment: blanks, escaped.
	PathBlanks = `(?:%20|%c2%a0|%e3%80%80)*`
	// PathTrail stands behind a segment: dots and blanks, which Windows cuts off.
	PathTrail = `(?:\.|%20|%c2%a0|%e3%80%80)*`
	// pathParameter is a parameter of a segment, whose semicolon may be escaped, or wide.
	// Its characters are written out: the class of all but a few is slow to print.
	pathParameter = `(?:(?:;|%3b|%ef%bc%9b)(?-i:[!-.0->@-~]*))?`
	// pathEmpty is a segment in which nothing stands, with the slash behind it.
	pathEmpty = PathTrail + pathParameter + `/`
	// PathRoot is the slash that a path begins with, and empty segments.
	PathRoot = `/(?:` + pathEmpty + `)*` + PathBlanks
	// PathSeparator stands between two segments, or for the slash that a path begins with.
	PathSeparator = `(?:` + pathEmpty + `)+` + PathBlanks
	// pathEnds are where an application may take a path to be over.
	pathEnds = `[?;#]|%3[bf]|%23|%ef%bc%(?:9[bf]|83)`
	// PathExtension is that of a file, `.json`; one that begins with a digit is more likely a version, `/v1.1`.
	PathExtension = `(?:\.[^0-9/?][^/?]*)?`
	// PathNothing is what may follow a path that is still the same.
	PathNothing = PathTrail + PathExtension + `(?:/` + PathTrail + pathParameter + `)*(?:(?:` + pathEnds + `)(?s:.*))?`
	// PathOnlyRoot is the root, with empty segments.
	PathOnlyRoot = `/(?:` + pathEmpty + `)*` + PathTrail + `(?:(?:` + pathEnds + `)(?s:.*))?`
	// PathAnything is what may follow a path prefix.
	PathAnything = PathTrail + PathExtension + `(?:(?:/|` + pathEnds + `)(?s:.*))?`
)

// Full-width forms of ASCII stand in Unicode in ASCII's order, and normalisation makes ASCII of them.
const (
	fullWidthFirst  = 0xff01
	fullWidthLast   = 0xff5e
	fullWidthOffset = 0xff01 - '!'
)

// FoldPathRune gives one character for all those that applications that do not care about case or width take for one another.
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

// PathRuneSpellings is an expression, for `(?i)`, for the spellings in a path of a character and of those that fold to the same.
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
		if c < 0x80 && i == 0 { // its other case is for (?i)
			out = append(out, regexp.QuoteMeta(strings.ToLower(string(c))))
		}
		out = append(out, escaped(c))
		if '!' <= c && c <= '~' {
			out = append(out, escaped(c+fullWidthOffset))
		}
	}
	return "(?:" + strings.Join(out, "|") + ")"
}

// escaped is the percent-encoding of a character, in small letters.
func escaped(r rune) string {
	var out strings.Builder
	for _, b := range []byte(string(r)) {
		fmt.Fprintf(&out, "%%%02x", b)
	}
	return out.String()
}
