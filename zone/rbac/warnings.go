package rbac

import (
	"fmt"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// Warnings reports where the rules of an inbound with this protocol differ from what their author may expect. It does
// not repeat rules.Warnings.
func Warnings(rules matching.Rules, protocol matching.Protocol) []matching.Warning {
	var out []matching.Warning
	for i := range rules.Items {
		r := &rules.Items[i]
		for _, list := range []struct {
			name    string
			deny    bool
			entries []resources.PermissionMatch
		}{
			{"deny", true, r.Conf.Deny},
			{"allowWithShadowDeny", false, r.Conf.AllowWithShadowDeny},
			{"allow", false, r.Conf.Allow},
		} {
			for j := range list.entries {
				field := fmt.Sprintf("rules[%d].default.%s[%d]", r.Index, list.name, j)
				for _, text := range entryWarnings(&list.entries[j], list.deny, protocol) {
					out = append(out, matching.Warning{Policy: r.Origin, Field: field, Text: text})
				}
			}
		}
	}
	return out
}

func entryWarnings(m *resources.PermissionMatch, deny bool, protocol matching.Protocol) []string {
	var out []string
	bad := faultsOf(m)
	for _, f := range bad {
		out = append(out, faultWarning(f, deny))
	}
	if m.NeedsHTTP() && protocol != matching.HTTP {
		out = append(out, tcpWarning(m, deny))
	}
	id := m.SpiffeID
	switch {
	case deny || id == nil || bad.has(partIdentity) || id.Type != resources.MatchPrefix:
	case id.Value == resources.EveryIdentity:
		out = append(out,
			"the prefix allows every identity of every trust domain: name a trust domain to mean its identities")
	case endsInsideSegment(id.Value):
		out = append(out, fmt.Sprintf(
			"the prefix ends inside a path segment: it also allows %s-and-more; end it with a slash", id.Value))
	}
	return out
}

func faultWarning(f fault, deny bool) string {
	text := f.reason
	if f.part != partNone {
		text = string(f.part) + " is not valid: " + text
	}
	switch {
	case !deny:
		return text + ", so the entry allows nothing"
	case f.part == partNone:
		return text + ", so it denies everybody"
	}
	return text + ", so the entry denies as if it were not there"
}

func tcpWarning(m *resources.PermissionMatch, deny bool) string {
	const cannot = "path and method cannot be seen on a TCP inbound, so the entry "
	switch {
	case !deny:
		return cannot + "allows nothing there"
	case m.SpiffeID == nil && m.SNI == nil:
		return cannot + "denies everybody there"
	}
	return cannot + "denies without them there"
}

// endsInsideSegment reports whether a string prefix can match part of a segment of a SPIFFE ID.
func endsInsideSegment(prefix string) bool { return !strings.HasSuffix(prefix, "/") }
