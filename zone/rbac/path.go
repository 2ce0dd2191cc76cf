package rbac

import (
	"fmt"
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// allowedPaths writes a valid path match as tests of Envoy's `:path`, which is normalised and includes the query. A
// Prefix is by segment, and a trailing slash has no meaning: `/a/` and `/a` are one prefix, `/` is every path.
func allowedPaths(m *resources.PathMatch) []test {
	switch m.Type {
	case resources.MatchRegularExpression:
		return wholePath(resources.PathExpression(m.Value))(`\?`)
	case resources.MatchPrefix:
		prefix := strings.TrimSuffix(m.Value, "/")
		if prefix == "" {
			return nil
		}
		return append(literalPath(prefix, []string{"?"}), test{resources.MatchPrefix, prefix + "/"})
	}
	return literalPath(m.Value, []string{"?"})
}

// deniedPaths returns one test for all paths that some application may read as the denied one, and for unclear paths.
func deniedPaths(m *resources.PathMatch) []test {
	switch {
	case m.Type == resources.MatchRegularExpression:
		expr, err := resources.DeniedPathExpression(m.Value)
		if err != nil {
			return nil
		}
		return []test{denied(`(?:(?-i:` + expr + `)` + resources.PathNothing + `)`)}
	case m.Type == resources.MatchPrefix && strings.TrimSuffix(m.Value, "/") == "":
		return nil
	case m.Type == resources.MatchPrefix || isFile(m.Value):
		return []test{denied(deniedLiteral(m.Value, resources.PathAnything))}
	}
	if strings.Trim(m.Value, "/") == "" {
		return []test{denied(resources.PathOnlyRoot)}
	}
	return []test{denied(deniedLiteral(m.Value, resources.PathNothing))}
}

func denied(expr string) test {
	return test{resources.MatchRegularExpression, `(?i)` + expr + `|` + unclear}
}

// mustBeClear reports whether an allow entry must exclude climbing paths. An exact path needs no such limit, and a
// match of every path includes climbing ones.
func mustBeClear(m *resources.PathMatch) bool {
	return m.Type == resources.MatchRegularExpression || m.Type == resources.MatchPrefix &&
		strings.TrimSuffix(m.Value, "/") != ""
}

func literalPath(path string, suffixes []string) []test {
	out := []test{{resources.MatchExact, path}}
	for _, s := range suffixes {
		out = append(out, test{resources.MatchPrefix, path + s})
	}
	return out
}

// wholePath returns the tests for a user's expression. Invalid expressions do not get here (faultsOf).
func wholePath(expr string, err error) func(ends string) []test {
	return func(ends string) []test {
		if err != nil {
			return nil
		}
		return []test{expression(expr, ends)}
	}
}

// expression matches what expr matches, optionally followed by one of the ends and any text.
func expression(expr, ends string) test {
	return test{resources.MatchRegularExpression, fmt.Sprintf(`(?:%s)(?:(?:%s)(?s:.*))?`, expr, ends)}
}

// pathFault returns the reason why a path match can never do what it says, or "".
func pathFault(m *resources.PathMatch) string {
	switch m.Type {
	case resources.MatchExact, resources.MatchPrefix:
		return literalFault(m.Value)
	case resources.MatchRegularExpression:
		if _, err := resources.DeniedPathExpression(m.Value); err != nil {
			return err.Error()
		}
		return ""
	}
	return fmt.Sprintf("type %q is not Exact, Prefix or RegularExpression", m.Type)
}

const maxASCII = 0x7f

// literalFault refuses a literal that no normalised path can equal.
func literalFault(path string) string {
	switch {
	case !strings.HasPrefix(path, "/"):
		return "a path begins with a slash"
	case strings.ContainsAny(path, "?#\\"):
		return "a path has no query, fragment or backslash"
	case strings.Contains(path, "//"):
		return "paths are compared after double slashes were merged"
	case slices.ContainsFunc(strings.Split(path, "/"), func(s string) bool {
		segment, _, _ := strings.Cut(s, ";")
		return segment == "." || segment == ".."
	}):
		return "paths are compared after dot segments were resolved"
	case strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r >= maxASCII }):
		return "a path has no blanks, control characters or non-ASCII characters: write them percent-encoded"
	}
	return escapeFault(path)
}
