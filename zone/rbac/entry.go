package rbac

import (
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// anySpiffeID is the identity of every client that has one. An allow entry that names no identity means "any client of
// the mesh", never a client without a certificate.
const anySpiffeID = "spiffe://"

// entry is one entry of a list, ready to be written as a predicate. All parts that are set must match; within a part,
// one test is enough. An entry without parts matches every client.
type entry struct {
	identity, sni []test
	path, method  []test
	// clear excludes climbing paths.
	clear bool
	// headers must all match.
	headers []headerTest
}

// headerTest requires a header whose whole value matches.
type headerTest struct {
	name string
	test test
}

// test compares one string.
type test struct {
	kind  string // resources.MatchExact, MatchPrefix or MatchRegularExpression (whole string)
	value string
}

// lowerDeny widens the entry: it drops parts that are invalid or that the protocol's filter cannot see, so that the
// entry denies at least what its author intended.
func lowerDeny(m *resources.PermissionMatch, protocol matching.Protocol) entry {
	bad := faultsOf(m)
	var e entry
	if m.SpiffeID != nil && !bad.has(partIdentity) {
		e.identity = []test{{m.SpiffeID.Type, m.SpiffeID.Value}}
	}
	if m.SNI != nil && !bad.has(partSNI) {
		e.sni = []test{{resources.MatchExact, strings.ToLower(m.SNI.Value)}}
	}
	if protocol != matching.HTTP {
		return e
	}
	if m.Path != nil && !bad.has(partPath) {
		e.path = deniedPaths(m.Path)
	}
	if !bad.has(partMethod) {
		e.method = methodTests(deniedMethods(m.Method))
	}
	return e
}

// lowerAllow narrows the entry: one that has an invalid part, names nothing, or needs what the protocol's filter cannot
// see never matches, and ok is false.
func lowerAllow(m *resources.PermissionMatch, protocol matching.Protocol) (e entry, ok bool) {
	if len(faultsOf(m)) > 0 || m.NeedsHTTP() && protocol != matching.HTTP {
		return entry{}, false
	}
	e.identity = []test{{resources.MatchPrefix, anySpiffeID}}
	if m.SpiffeID != nil {
		e.identity = []test{{m.SpiffeID.Type, m.SpiffeID.Value}}
	}
	if m.SNI != nil {
		e.sni = []test{{resources.MatchExact, strings.ToLower(m.SNI.Value)}}
	}
	if m.Path != nil {
		e.path, e.clear = allowedPaths(m.Path), mustBeClear(m.Path)
	}
	e.method = methodTests(m.Method)
	return e, true
}

func methodTests(methods []string) []test {
	var out []test
	for _, method := range methods {
		out = append(out, test{resources.MatchExact, method})
	}
	return out
}

// headerTests returns the header conditions of a rule. If one of them is not valid, ok is false and nothing may match.
func headerTests(list []matching.HeaderMatch) (out []headerTest, ok bool) {
	for _, h := range list {
		expression, _, err := resources.ValueExpression(h.Expression)
		if err != nil {
			return nil, false
		}
		out = append(out, headerTest{strings.ToLower(h.Name), test{resources.MatchRegularExpression, expression}})
	}
	return out, true
}
