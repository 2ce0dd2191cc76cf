package rbac

import (
	"strings"
	"unicode/utf8"

	"github.com/causeway-mesh/causeway/resources"
)

// readsAs reports whether some application reads a path, without its query, as a literal one. It is the reference for
// deniedLiteral. It walks the path segment by segment, as such applications do.
func readsAs(path, literal string, behind func(string) bool) bool {
	if !strings.HasPrefix(path, "/") {
		return false
	}
	segments := literalSegments(literal)
	if len(segments) == 0 {
		return onlyEmpty(path)
	}
	return readSegments(path[1:], segments, behind)
}

// readSegments reads rest, which begins with a segment.
func readSegments(rest string, segments []string, behind func(string) bool) bool {
	segment, next, more := strings.Cut(rest, "/")
	if more && isTail(segment) && readSegments(next, segments, behind) {
		return true
	}
	for lead := rest; ; {
		if left, ok := readCharacters(lead, segments[0]); ok && readOn(left, segments[1:], behind) {
			return true
		}
		blank := leadingBlank(lead)
		if blank == 0 {
			return false
		}
		lead = lead[blank:]
	}
}

// readOn continues after a segment.
func readOn(left string, segments []string, behind func(string) bool) bool {
	if len(segments) == 0 {
		return behind(left)
	}
	tail, next, more := strings.Cut(left, "/")
	return more && isTail(tail) && readSegments(next, segments, behind)
}

// readCharacters consumes the beginning of path that reads as segment.
func readCharacters(path, segment string) (left string, ok bool) {
	for len(segment) > 0 {
		if len(path) == 0 {
			return "", false
		}
		want, n := nextRune(segment)
		got, m := nextRune(path)
		switch {
		case want == utf8.RuneError:
			if got != utf8.RuneError || !strings.EqualFold(segment[:n], path[:m]) {
				return "", false
			}
		case got == utf8.RuneError || resources.FoldPathRune(got) != resources.FoldPathRune(want):
			return "", false
		}
		segment, path = segment[n:], path[m:]
	}
	return path, true
}

// isTail reports whether s has only dots, blanks and a parameter, which have no meaning after a segment.
func isTail(s string) bool {
	s = trimTrailBefore(s)
	lower := strings.ToLower(s)
	return s == "" || s[0] == ';' || strings.HasPrefix(lower, "%3b") || strings.HasPrefix(lower, "%ef%bc%9b")
}

// trimTrailBefore removes dots and blanks from the beginning.
func trimTrailBefore(s string) string {
	for {
		n := trailing(s)
		if n == 0 {
			return s
		}
		s = s[n:]
	}
}

// trailing returns the length of the dot or blank at the beginning of s.
func trailing(s string) int {
	if strings.HasPrefix(s, ".") {
		return 1
	}
	return leadingBlank(s)
}

// leadingBlank returns the length of the escaped blank at the beginning of s.
func leadingBlank(s string) int {
	for _, blank := range blanks {
		if len(s) >= len(blank) && strings.EqualFold(s[:len(blank)], blank) {
			return len(blank)
		}
	}
	return 0
}

// endsPath reports whether s begins a parameter, a fragment or a query, whose sign may be escaped or wide.
func endsPath(s string) bool {
	s = strings.ToLower(s)
	for _, end := range []string{"?", ";", "#", "%3b", "%3f", "%23", "%ef%bc%9b", "%ef%bc%9f", "%ef%bc%83"} {
		if strings.HasPrefix(s, end) {
			return true
		}
	}
	return false
}

// nothing reports whether an application reads a path with and without s after it as the same.
func nothing(s string) bool {
	return anyTrail(s, func(s string) bool { return s == "" || endsPath(s) || onlyEmpty(s) })
}

// anything reports whether s follows a path, or is below it.
func anything(s string) bool {
	return anyTrail(s, func(s string) bool { return s == "" || endsPath(s) || s[0] == '/' })
}

// anyTrail tries every remainder of s after its leading dots, blanks and an extension.
func anyTrail(s string, holds func(string) bool) bool {
	for {
		if holds(s) {
			return true
		}
		if len(s) > 1 && s[0] == '.' && strings.IndexByte("0123456789/?", s[1]) < 0 {
			end := strings.IndexByte(s, '/')
			if end < 0 || holds(s[end:]) {
				return true
			}
		}
		n := trailing(s)
		if n == 0 {
			return false
		}
		s = s[n:]
	}
}

// onlyEmpty reports whether only empty segments follow.
func onlyEmpty(s string) bool {
	for strings.HasPrefix(s, "/") {
		segment, rest, more := strings.Cut(s[1:], "/")
		if isTail(segment) {
			if !more {
				return true
			}
			s = "/" + rest
			continue
		}
		return endsPath(trimTrailBefore(segment))
	}
	return false
}
