package zone_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// spellings are known disguises, with {d} for the denied path, {1} and {2} for its two segments and {1'} for the first
// without its first letter. Each run sends them, and they are the rows of the table in docs/permissions.md.
var spellings = []string{
	"{d}", "{d}/", "{d}/x", "/{1};x/{2}", "/;x{d}", "/{1}/;/{2}", "/{1}%3b/{2}", "/{1}%3Bx/{2}", "{d};x", "{d}%3bx",
	"{d}%3fx", "{d}%23x", "/{1}//{2}",
	"/{1}/./{2}", "/x/..{d}", "/x/..;{d}", "/x/%2e%2e{d}", "/x/%2e%2e;{d}", "/x/%252e%252e{d}", `/{1}\{2}`,
	"/{1}%5c{2}", "/{1}%255c{2}",
	"/{1}%2f{2}", "/{1}%252f{2}", "/{1}%2%66{2}", "/x/%2e%2%65/{1}/{2}", "/{1}%c0%af{2}", "/x/%c0%ae%c0%ae{d}",
	"/{1}%u002f{2}", "/{1}%ef%bc%8f{2}", "/{1}%e2%88%95{2}",
	"{D}", "/%61{1'}/{2}", "/%2561{1'}/{2}", "/%c1%a1{1'}/{2}", "/%u0061{1'}/{2}", "/%ef%bd%81{1'}/{2}",
	"/ap%c4%b1/{2}", "/%ff{1}/{2}", "/%c2%ad{1}/{2}",
	"{d}%20", "{d}.", "/{1}%20/{2}", "/{1}./{2}", "/%20{1}/{2}", "{d}%09", "{d}%0a", "{d}%00", "{d}%2500", "{d}.json",
	"{d}::$DATA", "/{1}/%09{2}",
	"{d}?x", "/..{d}", "/x/../{1}/{2}?y", "{d};/../x", "/...{d}",
}

func spelled(pattern, path string) string {
	first, second, _ := strings.Cut(path[1:], "/")
	return strings.NewReplacer("{d}", path, "{D}", strings.ToUpper(path), "{1'}", first[1:], "{1}", first, "{2}",
		second).Replace(pattern)
}

// pieces are inserted into a path between any two characters.
var pieces = []string{
	";x", ";", "%3b", "%3B=", "/", "//", "/./", "/x/../", "/x/..;/", "/%2e%2e/", "/%2e%2e;/", "..", "../", ".", "\\",
	"%5c", "%255c", "%2f", "%252f", "%25252f", "%2%66",
	"%c0%af", "%c0%ae", "%20", "%09", "%0a", "%00", "%2500", "%", "%u002e", "%u2215", "?x", "?", "%3f", "%253f", "%23",
	"+", "%ff", "%e9", "%80", "%c2%ad", "%e2%80%8b",
	"%ef%bc%8f", "%ef%bc%8e", "%ef%bc%9b", ".json", ":$", "::$DATA", "~1", "/;/", "/%20/", "/.%20/", "x", "%2525",
	"%c2%a0", "%e3%80%80", "/..%20/", "/%252e%252e/", "/.;/",
}

// disguised returns a path that differs from another by a few changes.
func disguised(r *rand.Rand, path string) string {
	for range 1 + r.IntN(3) {
		at := 1 + r.IntN(len(path))
		if r.IntN(2) == 0 {
			path = path[:at] + pieces[r.IntN(len(pieces))] + path[at:]
			continue
		}
		if at == len(path) {
			at--
		}
		path = path[:at] + rewrittenByte(r, path[at]) + path[at+1:]
	}
	return path
}

func rewrittenByte(r *rand.Rand, c byte) string {
	switch r.IntN(8) {
	case 0:
		return fmt.Sprintf("%%%02x", c)
	case 1:
		return fmt.Sprintf("%%25%02x", c)
	case 2:
		return strings.ToUpper(string(rune(c)))
	case 3:
		return fmt.Sprintf("%%u00%02x", c)
	case 4:
		return fmt.Sprintf("%%c%d%%%02x", c>>6&1, c&0x3f|0x80)
	case 5:
		if '!' <= c && c <= '~' {
			return percentEncoded(rune(c) + 0xfee0)
		}
	case 6:
		if c == 'i' {
			return "%c4%b1"
		}
		return fmt.Sprintf("%%25%%%02x%%%02x", fmt.Sprintf("%02x", c)[0], fmt.Sprintf("%02x", c)[1])
	}
	return string(rune(c))
}

func percentEncoded(r rune) string {
	var out strings.Builder
	for _, b := range []byte(string(r)) {
		fmt.Fprintf(&out, "%%%02x", b)
	}
	return out.String()
}
