package rbac

import (
	"slices"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// foreseen holds the entries of one rule. A closed rule denies everybody. Entries without an exact identity are in
// others.
type foreseen struct {
	name   string
	closed bool
	exact  map[string][]clause
	others []clause
}

// kind is an entry's list and its effect: an entry of the shadow's list denies in the dry run, and allows otherwise.
type kind uint8

const (
	kindDeny kind = iota
	kindShadowDeny
	kindAllow
	kindShadowAllow
	kinds
)

// clause is an entry for clients whose identity begins with prefix.
type clause struct {
	kind   kind
	prefix string
	match  *resources.PermissionMatch
	// parts are the parts that the entry, or the headers of its rule, test.
	parts Parts
}

// foreseenFor is the key under which a rule's lists are cached.
type foreseenFor struct{ protocol matching.Protocol }

func foresee(r *matching.Rule, protocol matching.Protocol) *foreseen {
	out := &foreseen{name: r.Origin.String(), closed: r.Closed}
	out.addDenies(kindDeny, r.Conf.Deny, protocol)
	out.addDenies(kindShadowDeny, r.Conf.AllowWithShadowDeny, protocol)
	var headers Parts
	if len(r.Headers) > 0 {
		headers = PartHeaders
	}
	if headers == 0 || protocol == matching.HTTP {
		out.addAllows(kindAllow, r.Conf.Allow, protocol, headers)
		out.addAllows(kindShadowAllow, r.Conf.AllowWithShadowDeny, protocol, headers)
	}
	return out
}

// addDenies drops the parts that Evaluate treats as matching: invalid ones and, on TCP, path and method.
func (f *foreseen) addDenies(as kind, list []resources.PermissionMatch, protocol matching.Protocol) {
	for i := range list {
		m := &list[i]
		bad := faultsOf(m)
		c := clause{kind: as, match: m}
		if m.SNI != nil && !bad.has(partSNI) {
			c.parts |= PartSNI
		}
		if m.Path != nil && !bad.has(partPath) && protocol == matching.HTTP && !isWhole(m.Path) {
			c.parts |= PartPath
		}
		if len(m.Method) > 0 && !bad.has(partMethod) && protocol == matching.HTTP {
			c.parts |= PartMethod
		}
		identity := m.SpiffeID
		if bad.has(partIdentity) {
			identity = nil
		}
		f.add(c, identity)
	}
}

// addAllows leaves out entries that allow nobody: invalid ones and, on TCP, those that need a request.
func (f *foreseen) addAllows(as kind, list []resources.PermissionMatch, protocol matching.Protocol, headers Parts) {
	for i := range list {
		m := &list[i]
		if len(faultsOf(m)) > 0 || m.NeedsHTTP() && protocol != matching.HTTP {
			continue
		}
		c := clause{kind: as, match: m, parts: headers, prefix: anySpiffeID}
		if m.SNI != nil {
			c.parts |= PartSNI
		}
		if m.Path != nil && !isWhole(m.Path) {
			c.parts |= PartPath
		}
		if len(m.Method) > 0 {
			c.parts |= PartMethod
		}
		f.add(c, m.SpiffeID)
	}
}

func (f *foreseen) add(one clause, identity *resources.SpiffeIDMatch) {
	if identity == nil || identity.Type == resources.MatchPrefix {
		if identity != nil {
			one.prefix = identity.Value
		}
		f.others = append(f.others, one)
		return
	}
	if f.exact == nil {
		f.exact = map[string][]clause{}
	}
	f.exact[identity.Value] = append(f.exact[identity.Value], one)
}

// isWhole reports whether a match covers every path.
func isWhole(m *resources.PathMatch) bool {
	return m.Type == resources.MatchPrefix && strings.TrimSuffix(m.Value, "/") == ""
}

func (c *clause) denies() bool { return c.kind == kindDeny || c.kind == kindShadowDeny }

func (c *clause) hasMethod(method string) bool {
	if c.denies() {
		return slices.Contains(deniedMethods(c.match.Method), method)
	}
	return slices.Contains(c.match.Method, method)
}

func (c *clause) hasPath(path string) bool {
	if c.denies() {
		return matchesAnyWay(c.match.Path, path)
	}
	return matchesPath(c.match.Path, withoutQuery(path)) && (!mustBeClear(c.match.Path) || !climbingPath().MatchString(path))
}
