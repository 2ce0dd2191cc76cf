package rbac

import (
	"fmt"
	"strings"
)

// NormalizePath gives the path, query included, that matchers see of a request to an HTTP inbound for the path that the
// client wrote. Where refused is not "", the request is answered with 400 before any rule is asked, and it says why.
// It is what a real Envoy does with the settings of every inbound; testdata/paths.txt has its answers.
func NormalizePath(written string) (path, refused string) {
	if !strings.HasPrefix(written, "/") {
		return "", "a path begins with a slash"
	}
	if strings.Contains(written, "#") {
		return "", "it has a fragment"
	}
	if strings.ContainsFunc(written, func(r rune) bool { return r <= ' ' || r >= maxASCII }) {
		return "", "it has blanks, control or other than ASCII characters"
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

// unescape resolves the escapes that mean nothing else than the character, makes slashes of backslashes, and encodes what
// stands in a path only encoded. Escaped slashes are refused, wherever they stand.
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

// resolveDots takes `.` and `..` segments out; what would leave the root stays at it.
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

// withoutDotParameters makes plain dot segments of those with a parameter, `..;x`, where they are written unescaped between
// slashes.
func withoutDotParameters(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if dots, _, ok := strings.Cut(s, ";"); ok && (dots == "." || dots == "..") {
			segments[i] = dots
		}
	}
	return strings.Join(segments, "/")
}

// mergeSlashes leaves two of a path that is nothing but slashes, as Envoy does.
func mergeSlashes(path string) string {
	if len(path) > 1 && strings.Trim(path, "/") == "" {
		return "//"
	}
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}
