package rbac

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/matching"
)

// Request is what a filter sees of one request, or of one connection on TCP.
type Request struct {
	Protocol matching.Protocol
	// URISANs are the URI SANs of the client's verified certificate, in its order; empty without a certificate.
	URISANs []string
	// SNI is the client's server name, in any case.
	SNI string
	// Method and Path are empty on TCP. Path is normalised, as Envoy forwards it, and may carry a query.
	Method, Path string
	// Plaintext means that it arrived in plaintext, which only an inbound with a MeshTLS of mode Permissive accepts. It
	// has no URISANs and no SNI.
	Plaintext bool
	// Headers are by lower-case name; several with one name are joined by commas.
	Headers map[string]string
}

// Effect names the list of a rule that decided.
type Effect string

// The lists, spelled as their fields. EffectNone stands for a decision that no entry made.
const (
	EffectNone                Effect = ""
	EffectDeny                Effect = "deny"
	EffectAllowWithShadowDeny Effect = "allowWithShadowDeny"
	EffectAllow               Effect = "allow"
)

// Decision is a verdict and its origin.
type Decision struct {
	Allowed bool
	// Name is the name of Envoy's action: the KRI of the deciding policy, NameDefault, NameMultipleURISANs,
	// NameMalformedURISAN, NameUnusualMethod or NameOtherPath.
	Name string
	// Rule is the index in Rules.Items, or -1 if no rule decided. Effect and Entry identify the entry that matched;
	// EffectNone stands for a closed rule.
	Rule   int
	Effect Effect
	Entry  int
}

// Verdict is the decision about a request, and the decision if every allowWithShadowDeny were a deny.
type Verdict struct {
	Enforced, DryRun Decision
}

// Evaluate judges one request by the rules of an inbound. It is the reference, written from the documentation and not
// from the filters that this package generates, which must agree with it.
//
// A matching entry of any `deny` denies. Otherwise a matching entry of any `allow` or `allowWithShadowDeny` allows.
// Otherwise the request is denied (seed 000, "Evaluation rules"). Within each list, rules apply in their order.
func Evaluate(rules matching.Rules, req Request) Verdict {
	return Verdict{
		Enforced: decide(rules, &req, []Effect{EffectDeny}, []Effect{EffectAllow, EffectAllowWithShadowDeny}),
		DryRun:   decide(rules, &req, []Effect{EffectDeny, EffectAllowWithShadowDeny}, []Effect{EffectAllow}),
	}
}

// decide looks for a deny in all rules, and only then for an allow.
func decide(rules matching.Rules, req *Request, denying, allowing []Effect) Decision {
	if len(req.URISANs) > 1 || strings.Contains(strings.Join(req.URISANs, ""), ",") {
		return Decision{Name: NameMultipleURISANs, Rule: -1}
	}
	if len(req.URISANs) == 1 && strings.HasPrefix(req.URISANs[0], anySpiffeID) && !namesWorkload(req.URISANs[0]) {
		return Decision{Name: NameMalformedURISAN, Rule: -1}
	}
	if req.Protocol == matching.HTTP && namesMethod(rules) && isUnusualMethod(req) {
		return Decision{Name: NameUnusualMethod, Rule: -1}
	}
	if req.Protocol == matching.HTTP && namesPath(rules) && isElsewhere(req) {
		return Decision{Name: NameOtherPath, Rule: -1}
	}
	for i := range rules.Items {
		if rules.Items[i].Closed {
			return Decision{Name: rules.Items[i].Origin.String(), Rule: i}
		}
		if effect, entry, ok := find(&rules.Items[i], req, denying, denies); ok {
			return Decision{Name: rules.Items[i].Origin.String(), Rule: i, Effect: effect, Entry: entry}
		}
	}
	for i := range rules.Items {
		if !headersHold(rules.Items[i].Headers, req) {
			continue
		}
		if effect, entry, ok := find(&rules.Items[i], req, allowing, allows); ok {
			return Decision{Allowed: true, Name: rules.Items[i].Origin.String(), Rule: i, Effect: effect, Entry: entry}
		}
	}
	return Decision{Name: NameDefault, Rule: -1}
}

// headersHold reports whether each header is present and its whole value matches.
func headersHold(list []matching.HeaderMatch, req *Request) bool {
	return !slices.ContainsFunc(list, func(h matching.HeaderMatch) bool {
		value, there := req.Headers[strings.ToLower(h.Name)]
		_, _, unenforceable := resources.ValueExpression(h.Expression)
		expression, err := regexp.Compile(`\A(?:` + h.Expression + `)\z`)
		return !there || unenforceable != nil || err != nil || !expression.MatchString(value)
	})
}

// namesWorkload reports whether a URI SAN is a SPIFFE ID with a path (SPIFFE-ID, section 2; X509-SVID, section 5.2).
func namesWorkload(uri string) bool {
	id, err := spiffeid.FromString(uri)
	return err == nil && id.Path() != ""
}

// find returns the first entry of the rule's lists that matches.
func find(r *matching.Rule, req *Request, lists []Effect,
	match func(*resources.PermissionMatch, *Request) bool) (Effect, int, bool) {
	for _, effect := range lists {
		for i := range listOf(r, effect) {
			if match(&listOf(r, effect)[i], req) {
				return effect, i, true
			}
		}
	}
	return EffectNone, 0, false
}

func listOf(r *matching.Rule, effect Effect) []resources.PermissionMatch {
	switch effect {
	case EffectDeny:
		return r.Conf.Deny
	case EffectAllow:
		return r.Conf.Allow
	case EffectAllowWithShadowDeny:
		return r.Conf.AllowWithShadowDeny
	}
	return nil
}

// inClear is why a part counts as matching for a plaintext client.
const inClear = "a plaintext client has no identity"

// denies reports whether a deny entry matches. Invalid parts count as matching; so do path and method on TCP, and
// identity and server name in plaintext.
func denies(m *resources.PermissionMatch, req *Request) bool {
	bad := faultsOf(m)
	if req.Plaintext { // it may be anybody
		bad = append(bad, fault{partIdentity, inClear}, fault{partSNI, inClear})
	}
	if m.SpiffeID != nil && !bad.has(partIdentity) && !matchesIdentity(m.SpiffeID, req) {
		return false
	}
	if m.SNI != nil && !bad.has(partSNI) && !matchesSNI(m.SNI, req) {
		return false
	}
	if req.Protocol != matching.HTTP {
		return true
	}
	if m.Path != nil && !bad.has(partPath) && !matchesAnyWay(m.Path, req.Path) {
		return false
	}
	return len(m.Method) == 0 || bad.has(partMethod) || slices.Contains(deniedMethods(m.Method), req.Method)
}

// allows reports whether an allow entry matches. Invalid entries never match, nor, on TCP, do entries that need a
// request. A client without a SPIFFE ID is never allowed; a plaintext client is allowed only by entries for every
// identity.
func allows(m *resources.PermissionMatch, req *Request) bool {
	switch {
	case len(faultsOf(m)) > 0, m.NeedsHTTP() && req.Protocol != matching.HTTP:
		return false
	case req.Plaintext && !ForEverybody(m):
		return false
	case req.Plaintext:
	case !matchesIdentity(&resources.SpiffeIDMatch{Type: resources.MatchPrefix, Value: anySpiffeID}, req):
		return false
	case m.SpiffeID != nil && !matchesIdentity(m.SpiffeID, req):
		return false
	case m.SNI != nil && !matchesSNI(m.SNI, req):
		return false
	}
	switch {
	case m.Path != nil && (!matchesPath(m.Path, withoutQuery(req.Path)) || mustBeClear(m.Path) &&
		climbingPath().MatchString(req.Path)):
		return false
	}
	return len(m.Method) == 0 || slices.Contains(m.Method, req.Method)
}

// ForEverybody reports whether an allow entry is for every identity and server name. Only such entries apply to
// plaintext clients.
func ForEverybody(m *resources.PermissionMatch) bool {
	return m.SNI == nil && (m.SpiffeID == nil ||
		*m.SpiffeID == resources.SpiffeIDMatch{Type: resources.MatchPrefix, Value: anySpiffeID})
}

func matchesIdentity(m *resources.SpiffeIDMatch, req *Request) bool {
	if len(req.URISANs) == 0 {
		return false
	}
	if m.Type == resources.MatchPrefix {
		return strings.HasPrefix(req.URISANs[0], m.Value)
	}
	return req.URISANs[0] == m.Value
}

func matchesSNI(m *resources.SNIMatch, req *Request) bool { return strings.EqualFold(m.Value, req.SNI) }

// matchesPath matches a path without its query.
func matchesPath(m *resources.PathMatch, path string) bool {
	switch m.Type {
	case resources.MatchPrefix:
		prefix := strings.TrimSuffix(m.Value, "/")
		return prefix == "" || path == prefix || strings.HasPrefix(path, prefix+"/")
	case resources.MatchRegularExpression:
		return regexp.MustCompile(`\A(?:` + m.Value + `)\z`).MatchString(path)
	}
	return path == m.Value
}

// matchesAnyWay compares a path with a denied one as applications read it. An unclear path always matches, because
// applications may read it in any way.
func matchesAnyWay(m *resources.PathMatch, path string) bool {
	if unclearPath().MatchString(path) {
		return true
	}
	path = withoutQuery(path)
	switch {
	case m.Type == resources.MatchRegularExpression:
		respelled, err := resources.RespelledExpression(m.Value)
		return err != nil || expressionReads(regexp.MustCompile(`\A(?:`+respelled+`)\z`), path)
	case m.Type == resources.MatchPrefix && strings.TrimSuffix(m.Value, "/") == "":
		return true
	case m.Type == resources.MatchPrefix || isFile(m.Value):
		return readsAs(path, m.Value, anything)
	}
	return readsAs(path, m.Value, nothing)
}

// expressionReads tries every prefix of a path that only ignorable characters follow.
func expressionReads(expression *regexp.Regexp, path string) bool {
	for i := 0; i <= len(path); i++ {
		if nothing(path[i:]) && expression.MatchString(path[:i]) {
			return true
		}
	}
	return false
}

func withoutQuery(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path
}
