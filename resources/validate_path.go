package resources

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	// refusedEscapes are escapes that never reach a rule: Envoy responds with 400 to a path that contains one.
	refusedEscapes = regexp.MustCompile(`%(?:2[fF]|5[cC]|00)`)
	// resolvedEscapes are the escapes of letters, digits and `-._~`. Paths are compared with these characters
	// unescaped.
	resolvedEscapes = regexp.MustCompile(`%(?:2[dDeE]|3[0-9]|4[1-9a-fA-F]|5[0-9aAfF]|6[1-9a-fA-F]|7[0-9aAeE])`)
	// encodedCharacters are characters that are percent-encoded when paths are compared.
	encodedCharacters = regexp.MustCompile(`[^!-~]|["<>^` + "`" + `{|}]`)
)

// unreachablePath returns the reason why no request has the path after normalisation, or "". An entry with such a path
// would allow nothing, or deny more than it says.
func unreachablePath(path string) string {
	switch {
	case strings.Contains(path, `\`):
		return `has a backslash: paths are compared with / in its place`
	case strings.Contains(path, "//"):
		return "has a double slash: paths are compared after double slashes were merged, so write one"
	case slices.ContainsFunc(strings.Split(path, "/"), isDots):
		return "has a dot segment: paths are compared after dot segments were resolved, so write what it leads to"
	case refusedEscapes.MatchString(path):
		return fmt.Sprintf("has %s: requests with an escaped slash, backslash or NUL are refused before any rule is evaluated", refusedEscapes.FindString(path))
	case resolvedEscapes.MatchString(path):
		return fmt.Sprintf("has %s: paths are compared with escaped letters, digits and -._~ unescaped, so write the character", resolvedEscapes.FindString(path))
	case encodedCharacters.MatchString(path):
		return fmt.Sprintf("has %q: paths are compared with it percent-encoded", encodedCharacters.FindString(path))
	}
	return ""
}

// isDots reports whether a segment is a dot segment. A parameter makes no difference, because Envoy also resolves dot
// segments with a plain parameter.
func isDots(segment string) bool {
	segment, _, _ = strings.Cut(segment, ";")
	return segment == "." || segment == ".."
}
