package rbac

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// reserved are the characters that Envoy leaves as a client wrote them. Escapes of other characters it either resolves (letters,
// digits, `-._~`) or refuses (slashes, NUL), and their hexadecimal digits it leaves in either case.
const reserved = resources.ReservedPathCharacters

// rewritten are the characters that Envoy always percent-encodes.
const rewritten = "\"<>^`{|}"

// After a denied path, what stands behind a path parameter or a fragment, plain or encoded, does not make another path.
const (
	denyEnds       = `[?;#]|%3[bB]|%23`
	denyPrefixEnds = `[/?;#]|%3[bB]|%23`
)

// dotParameters is for paths with a dot segment that has a parameter, `/a/..;/b`. Envoy resolves such a segment where it is
// written plainly; written `%2e%2e;` it arrives like this, and some applications resolve it then.
const dotParameters = `[^?]*/\.\.?;(?s:.*)`

var denySuffixes = []string{"?", ";", "#", "%3b", "%3B", "%23"}

// disguises is an expression for all the ways to write a literal path, and whether there is more than one.
func disguises(path string) (expr string, many bool) {
	var out strings.Builder
	for len(path) > 0 {
		c, n := nextByte(path)
		switch {
		case strings.IndexByte(reserved, c) >= 0:
			many = true
			fmt.Fprintf(&out, "(?:%s|%s)", regexp.QuoteMeta(string(rune(c))), resources.EscapeExpression(c))
		case n > 1:
			many = true
			out.WriteString(resources.EscapeExpression(c))
		default:
			out.WriteString(regexp.QuoteMeta(path[:1]))
		}
		path = path[n:]
	}
	return out.String(), many
}

// nextByte reads the first byte that path stands for, and how many it takes: three for an escape.
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

// escapeFault refuses a literal that Envoy's normalised paths never are, because it writes some of it in another way.
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
