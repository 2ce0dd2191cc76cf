package rbac

import (
	"fmt"
	"slices"
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
	var b []byte
	percent := -1 // where b has the last percent sign that begins no escape
	for len(path) > 0 {
		c, n := nextByte(path)
		switch {
		case n == 1 && c == '\\':
			b = append(b, '/')
		case n == 1 && strings.IndexByte(rewritten, c) >= 0:
			b = fmt.Appendf(b, "%%%02X", c)
		case n == 1:
			if c == '%' {
				percent = len(b)
			}
			b = append(b, c)
		case c == '/' || c == '\\':
			return "", "it has an escaped slash, " + path[:n]
		case c == 0:
			return "", "it has an escaped NUL"
		case isUnreserved(c):
			b = withoutNewEscape(append(b, c), percent, path[n:])
		default:
			b = append(b, path[:n]...)
		}
		path = path[n:]
	}
	return string(b), ""
}

// withoutNewEscape encodes the percent sign at an index of out where the character that was just unescaped makes an
// escape of it, as in %2%66 and %%32f: nobody wrote that escape. rest is what follows in the path.
func withoutNewEscape(out []byte, percent int, rest string) []byte {
	if percent < 0 || percent < len(out)-3 {
		return out
	}
	made := string(out[percent:])
	if percent == len(out)-2 && rest != "" {
		made += rest[:1]
	}
	if _, n := nextByte(made); n == 1 {
		return out
	}
	return slices.Insert(out, percent+1, '2', '5')
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
