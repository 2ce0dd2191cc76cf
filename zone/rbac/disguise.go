package rbac

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/causeway-mesh/causeway/resources"
)

// rewritten are the characters that Envoy always percent-encodes.
const rewritten = "\"<>^`{|}"

// deniedLiteral returns an expression for every spelling that some application reads as a literal path.
// docs/permissions.md lists these readings.
func deniedLiteral(path, behind string) string {
	var out strings.Builder
	out.WriteString(resources.PathRoot)
	for i, segment := range literalSegments(path) {
		if i > 0 {
			out.WriteString(resources.PathSeparator)
		}
		for len(segment) > 0 {
			r, n := nextRune(segment)
			if r == utf8.RuneError {
				out.WriteString(strings.ToLower(segment[:n]))
			} else {
				out.WriteString(resources.PathRuneSpellings(r))
			}
			segment = segment[n:]
		}
	}
	return out.String() + behind
}

// literalSegments returns the segments of a path as they are compared: without blanks at either end and without
// trailing dots, unless the segment has nothing else.
func literalSegments(path string) []string {
	path = strings.Trim(path, "/")
	if path == "" {
		return nil
	}
	out := strings.Split(path, "/")
	for i, segment := range out {
		if trimmed := trimTrail(trimBlanks(segment)); trimmed != "" {
			out[i] = trimmed
		}
	}
	return out
}

var blanks = []string{"%20", "%C2%A0", "%E3%80%80"}

// trimBlanks removes escaped blanks from the beginning; trimTrail removes blanks and dots from the end.
func trimBlanks(s string) string {
	for _, blank := range blanks {
		if len(s) >= len(blank) && strings.EqualFold(s[:len(blank)], blank) {
			return trimBlanks(s[len(blank):])
		}
	}
	return s
}

func trimTrail(s string) string {
	if short, ok := strings.CutSuffix(s, "."); ok {
		return trimTrail(short)
	}
	for _, blank := range blanks {
		if n := len(s) - len(blank); n >= 0 && strings.EqualFold(s[n:], blank) {
			return trimTrail(s[:n])
		}
	}
	return s
}

// isFile reports whether a path ends like the name of a file. What follows, as in `/admin.php/x`, is then an argument.
func isFile(path string) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	i := strings.LastIndexByte(name, '.')
	return i > 0 && i < len(name)-1 && (name[i+1] < '0' || name[i+1] > '9')
}

// nextRune reads the first character that path stands for, and the number of bytes it occupies. The character is
// utf8.RuneError if an escape is not a UTF-8 character.
func nextRune(path string) (r rune, n int) {
	first, n := nextByte(path)
	if first < utf8.RuneSelf {
		return rune(first), n
	}
	var raw []byte
	for at := 0; len(raw) < utf8.UTFMax && at < len(path); {
		b, width := nextByte(path[at:])
		if width == 1 {
			break
		}
		raw, at = append(raw, b), at+width
		if r, size := utf8.DecodeRune(raw); r != utf8.RuneError && size == len(raw) {
			return r, at
		}
	}
	return utf8.RuneError, n
}

// nextByte reads the first byte that path stands for, and the number of bytes it occupies: three for an escape.
func nextByte(path string) (c byte, n int) {
	if len(path) >= 3 && path[0] == '%' && isHex(path[1]) && isHex(path[2]) {
		_, _ = fmt.Sscanf(path[1:3], "%02x", &c)
		return c, 3
	}
	return path[0], 1
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// escapeFault refuses a literal that no path normalised by Envoy can equal, because Envoy spells part of it
// differently.
func escapeFault(path string) string {
	if i := strings.IndexAny(path, rewritten); i >= 0 {
		return fmt.Sprintf("write %%%02X for %q: paths are compared percent-encoded", path[i], path[i])
	}
	for len(path) > 0 {
		c, n := nextByte(path)
		switch {
		case n == 1:
		case isUnreserved(c):
			return fmt.Sprintf("write %q for %s: paths are compared with such escapes resolved", c, path[:n])
		case c == '/' || c == '\\' || c == 0:
			return "requests with " + path[:n] + " in their path are refused"
		}
		path = path[n:]
	}
	return ""
}

func isUnreserved(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || strings.IndexByte("-._~", c) >= 0
}
