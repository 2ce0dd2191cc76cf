package rbac

import (
	"fmt"
	"strings"
)

// NormalizePath returns the path, query included, that the matchers of an HTTP inbound see for the path that the client
// wrote. If refused is not empty, it is the reason why Envoy answers with 400 before it evaluates any rule. The result
// is that of a real Envoy with the settings of every inbound; testdata/paths.txt has its answers.
func NormalizePath(written string) (path, refused string) {
	if !strings.HasPrefix(written, "/") {
		return "", "a path begins with a slash"
	}
	if strings.Contains(written, "#") {
		return "", "it has a fragment"
	}
	if strings.ContainsFunc(written, func(r rune) bool { return r <= ' ' || r >= maxASCII }) {
		return "", "it has blanks, control characters or non-ASCII characters"
	}
	path, query, hasQuery := strings.Cut(written, "?")
	path, refused = unescape(withoutDotParameters(path))
	if refused != "" {
		return "", refused
	}
	path = mergeSlashes(resolveDots(path))
	if hasQuery {
		path += "?" + query
	}
	return path, ""
}

// unescape resolves escapes of characters that need none, turns backslashes into slashes, and encodes characters that a
// path has only in encoded form. It refuses escaped slashes anywhere.
func unescape(path string) (out, refused string) {
	var b strings.Builder
	for len(path) > 0 {
		c, n := nextByte(path)
		switch {
		case n == 1 && c == '\\':
			b.WriteByte('/')
		case n == 1 && strings.IndexByte(rewritten, c) >= 0:
			fmt.Fprintf(&b, "%%%02X", c)
		case n == 1:
			b.WriteByte(c)
		case c == '/' || c == '\\':
			return "", "it has an escaped slash, " + path[:n]
		case c == 0:
			return "", "it has an escaped NUL"
		case isUnreserved(c):
			b.WriteByte(c)
		default:
			b.WriteString(path[:n])
		}
		path = path[n:]
	}
	return b.String(), ""
}

// resolveDots removes `.` and `..` segments. A path that would leave the root stays there.
func resolveDots(path string) string {
	segments := strings.Split(path[1:], "/")
	out := []string{}
	for i, s := range segments {
		last := i == len(segments)-1
		switch s {
		case ".":
		case "..":
			out = out[:max(len(out)-1, 0)]
		default:
			out = append(out, s)
			continue
		}
		if last {
			out = append(out, "")
		}
	}
	return "/" + strings.Join(out, "/")
}

// withoutDotParameters replaces dot segments that have a parameter, `..;x`, with plain ones if they are unescaped and
// between slashes.
func withoutDotParameters(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if dots, _, ok := strings.Cut(s, ";"); ok && (dots == "." || dots == "..") {
			segments[i] = dots
		}
	}
	return strings.Join(segments, "/")
}

// mergeSlashes merges slashes. It keeps two in a path that has nothing but slashes, as Envoy does.
func mergeSlashes(path string) string {
	if len(path) > 1 && strings.Trim(path, "/") == "" {
		return "//"
	}
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}
