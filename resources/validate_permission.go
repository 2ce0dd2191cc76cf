package resources

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// permissionRules checks the number of rules. A user's permission has one item without matches. A peer may send several
// (seed 000, "Schema").
func (v *validation) permissionRules(p *Policy, spec *fieldPath) {
	if len(p.Rules) > 1 && !v.peer {
		v.fail(spec.field("rules"), "has %d items, want one: a MeshTrafficPermission has no matches, so put all entries into one default", len(p.Rules))
	}
	for i := range p.Rules {
		if len(p.Rules[i].Default) == 0 && v.peer {
			v.fail(spec.field("rules").item(i).field("default"), "is required")
		}
	}
}

func (v *validation) permissionAction(a *PermissionAction, at *fieldPath) {
	switch a.Action {
	case ActionAllow, ActionDeny, ActionAllowWithShadowDeny:
	default:
		v.fail(at.field("action"), "want %s, %s or %s, got %q", ActionAllow, ActionDeny, ActionAllowWithShadowDeny,
			shorten(a.Action))
	}
}

func (v *validation) permission(c *PermissionConf, at *fieldPath) {
	check := func(name string, entries []PermissionMatch) {
		for i := range entries {
			v.permissionMatch(&entries[i], at.field(name).item(i))
		}
	}
	check("deny", c.Deny)
	check("allowWithShadowDeny", c.AllowWithShadowDeny)
	check("allow", c.Allow)
}

func (v *validation) permissionMatch(m *PermissionMatch, at *fieldPath) {
	if m.SpiffeID == nil && m.SNI == nil && m.Path == nil && m.Method == nil {
		v.fail(at, "is empty: give at least one of spiffeId, sni, path and method")
		return
	}
	if m.SpiffeID != nil {
		if reason := spiffeIDProblem(m.SpiffeID); reason != "" {
			v.fail(at.field("spiffeId").field(problemField(m.SpiffeID.Type, MatchExact, MatchPrefix)), "%s", reason)
		}
	}
	if m.SNI != nil {
		switch {
		case m.SNI.Type != MatchExact:
			v.fail(at.field("sni").field("type"), "want %s, got %q", MatchExact, shorten(m.SNI.Type))
		case !isSubdomain(m.SNI.Value):
			v.fail(at.field("sni").field("value"), "%q is not a DNS name: want %s", shorten(m.SNI.Value), wantSubdomain)
		}
	}
	if m.Path != nil {
		reason := pathProblem(m.Path)
		if reason == "" && !v.peer {
			reason = unenforceablePath(m.Path)
		}
		if reason != "" {
			v.fail(at.field("path").field(problemField(m.Path.Type, MatchExact, MatchPrefix, MatchRegularExpression)),
				"%s", reason)
		}
	}
	v.methods(m.Method, at.field("method"))
}

// problemField returns the field of a match that is wrong: "type", unless the type is one of the known ones.
func problemField(got string, known ...string) string {
	for _, k := range known {
		if got == k {
			return "value"
		}
	}
	return "type"
}

var methodToken = regexp.MustCompile(`^[A-Z][A-Z0-9-]*$`)

func (v *validation) methods(methods Methods, at *fieldPath) {
	if methods != nil && len(methods) == 0 {
		v.fail(at, "is empty: leave it out to mean any method")
	}
	for i, m := range methods {
		if len(m) > MaxShortNameBytes || !methodToken.MatchString(m) {
			v.fail(at.item(i), "%q is not an HTTP method: want upper-case letters, for example GET", shorten(m))
		}
	}
}

func spiffeIDProblem(m *SpiffeIDMatch) string {
	switch {
	case len(m.Value) > MaxSpiffeIDBytes:
		return fmt.Sprintf("is %d bytes long, want at most %d", len(m.Value), MaxSpiffeIDBytes)
	case m.Type == MatchExact:
		if _, err := spiffeid.FromString(m.Value); err != nil {
			return fmt.Sprintf("%q is not a SPIFFE ID: %v", shorten(m.Value), err)
		}
	case m.Type == MatchPrefix:
		if reason := spiffePrefixProblem(m.Value); reason != "" {
			return fmt.Sprintf("%q is not the beginning of a SPIFFE ID: %s", shorten(m.Value), reason)
		}
	default:
		return fmt.Sprintf("want %s or %s, got %q", MatchExact, MatchPrefix, shorten(m.Type))
	}
	return ""
}

const spiffeScheme = "spiffe://"

// Characters that the SPIFFE specification allows.
var (
	trustDomainStart = regexp.MustCompile(`^[a-z0-9._-]*$`)
	spiffePathChars  = regexp.MustCompile(`^[a-zA-Z0-9._-]*$`)
)

// spiffePrefixProblem returns the reason why no SPIFFE ID begins with s, or "". The last segment may be partial.
// `spiffe://` alone is a prefix of all.
func spiffePrefixProblem(s string) string {
	rest, ok := strings.CutPrefix(s, spiffeScheme)
	if !ok {
		return "want spiffe:// and the beginning of a trust domain"
	}
	domain, path, hasPath := strings.Cut(rest, "/")
	if len(domain) > 255 || !trustDomainStart.MatchString(domain) || hasPath && domain == "" {
		return "want a trust domain of lower-case letters, digits, '.', '-' and '_'"
	}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		last := i == len(segments)-1
		if !spiffePathChars.MatchString(segment) {
			return "a path has letters, digits, '.', '-' and '_' only"
		}
		if !last && (segment == "" || segment == "." || segment == "..") {
			return "a path has no empty, '.' or '..' segment"
		}
	}
	return ""
}

// maxRegexBytes bounds a regular expression. Envoy compiles it for each inbound that it applies to.
const maxRegexBytes = 1024

// unenforceablePath returns the reason why a valid match would have another meaning in Envoy, or "".
func unenforceablePath(m *PathMatch) string {
	if m.Type == MatchRegularExpression {
		return pathExpressionProblem(m.Value)
	}
	return unreachablePath(m.Value)
}

// pathExpressionProblem returns the reason why an expression that compiles cannot be enforced on paths, in a deny or an
// allow, or "".
func pathExpressionProblem(s string) string {
	if _, err := DeniedPathExpression(s); err != nil {
		return fmt.Sprintf("%q cannot be enforced: %v", shorten(s), err)
	}
	return ""
}

func pathProblem(m *PathMatch) string {
	switch m.Type {
	case MatchExact, MatchPrefix:
		if !strings.HasPrefix(m.Value, "/") {
			return fmt.Sprintf("want a path that begins with /, got %q", shorten(m.Value))
		}
		if strings.ContainsAny(m.Value, "?#") {
			return "the query and the fragment are not part of the path: leave them out"
		}
		if len(m.Value) > MaxSpiffeIDBytes {
			return fmt.Sprintf("is %d bytes long, want at most %d", len(m.Value), MaxSpiffeIDBytes)
		}
	case MatchRegularExpression:
		if m.Value == "" || len(m.Value) > maxRegexBytes {
			return fmt.Sprintf("want a regular expression of 1 to %d bytes", maxRegexBytes)
		}
		if _, err := regexp.Compile(m.Value); err != nil {
			return fmt.Sprintf("%q is not a regular expression of RE2: %v", shorten(m.Value), err)
		}
	default:
		return fmt.Sprintf("want %s, %s or %s, got %q", MatchExact, MatchPrefix, MatchRegularExpression, shorten(m.Type))
	}
	return ""
}
