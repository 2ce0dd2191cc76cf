package rbac

import (
	xdscore "github.com/cncf/xds/go/xds/core/v3"
	xdsmatcher "github.com/cncf/xds/go/xds/type/matcher/v3"
	rbacconfig "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	networkinputs "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/network/v3"
	sslinputs "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/ssl/v3"
	envoymatcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/causeway-mesh/causeway/resources"
)

// Shorter names for the parts of Envoy's matching API.
type (
	predicate      = xdsmatcher.Matcher_MatcherList_Predicate
	predicateList  = xdsmatcher.Matcher_MatcherList_Predicate_PredicateList
	fieldMatcher   = xdsmatcher.Matcher_MatcherList_FieldMatcher
	extension      = xdscore.TypedExtensionConfig
	stringMatcher  = xdsmatcher.StringMatcher
	onMatch        = xdsmatcher.Matcher_OnMatch
	singleTest     = xdsmatcher.Matcher_MatcherList_Predicate_SinglePredicate
	wrappedSingle  = xdsmatcher.Matcher_MatcherList_Predicate_SinglePredicate_
	wrappedOr      = xdsmatcher.Matcher_MatcherList_Predicate_OrMatcher
	wrappedAnd     = xdsmatcher.Matcher_MatcherList_Predicate_AndMatcher
	wrappedNot     = xdsmatcher.Matcher_MatcherList_Predicate_NotMatcher
	wrappedValue   = xdsmatcher.Matcher_MatcherList_Predicate_SinglePredicate_ValueMatch
	wrappedActions = xdsmatcher.Matcher_OnMatch_Action
	wrappedMatcher = xdsmatcher.Matcher_OnMatch_Matcher
)

// listMatcher writes steps as a matcher list. In front stands what no policy can turn off: Envoy joins several URI SANs
// by a comma, so that a prefix would match the first of them and an exact deny none. Since that looks up the URI
// SAN, it also ends the matching of a plaintext connection, which Envoy then denies. At the end, everything is denied.
func listMatcher(list []step, methods bool) *xdsmatcher.Matcher {
	matchers := inFront(methods)
	for _, s := range list {
		predicates := make([]*predicate, len(s.entries))
		for i := range s.entries {
			predicates[i] = entryPredicate(&s.entries[i])
		}
		matchers = append(matchers, &fieldMatcher{Predicate: anyOf(predicates), OnMatch: s.decision})
	}
	return matcherList(matchers, action(NameDefault, true))
}

// matcherList asks matchers one after the other; otherwise, which may be nil, is for when none has an answer.
func matcherList(matchers []*fieldMatcher, otherwise *onMatch) *xdsmatcher.Matcher {
	return &xdsmatcher.Matcher{
		MatcherType: &xdsmatcher.Matcher_MatcherList_{MatcherList: &xdsmatcher.Matcher_MatcherList{Matchers: matchers}},
		OnNoMatch:   otherwise,
	}
}

// ask makes a matcher the consequence of another.
func ask(m *xdsmatcher.Matcher) *onMatch { return &onMatch{OnMatch: &wrappedMatcher{Matcher: m}} }

// denyAll is the matcher that needs no input at all.
func denyAll() *xdsmatcher.Matcher {
	return &xdsmatcher.Matcher{OnNoMatch: action(NameDefault, true)}
}

func action(name string, deny bool) *onMatch {
	a := &rbacconfig.Action{Name: name, Action: rbacconfig.RBAC_ALLOW}
	if deny {
		a.Action = rbacconfig.RBAC_DENY
	}
	return &onMatch{OnMatch: &wrappedActions{Action: typed("envoy.filters.rbac.action", a)}}
}

// entryPredicate tests the identity first: it is cheapest, and the same for every request of a connection.
func entryPredicate(e *entry) *predicate {
	var parts []*predicate
	for _, p := range []struct {
		input *extension
		tests []test
	}{
		{uriSAN, e.identity}, {serverName, e.sni}, {methodHeader, e.method}, {pathHeader, e.path},
	} {
		if len(p.tests) == 0 {
			continue
		}
		alternatives := make([]*predicate, len(p.tests))
		for i, t := range p.tests {
			alternatives[i] = single(p.input, stringMatch(t))
		}
		parts = append(parts, anyOf(alternatives))
	}
	if e.clear {
		parts = append(parts, &predicate{MatchType: &wrappedNot{NotMatcher: climbs}})
	}
	for _, h := range e.headers {
		parts = append(parts, single(header(h.name), stringMatch(h.test)))
	}
	if len(parts) == 0 {
		return everybody()
	}
	return allOf(parts)
}

// everybody is true for whoever comes so far: multipleURISANs has been asked before and was false.
func everybody() *predicate {
	return &predicate{MatchType: &wrappedNot{NotMatcher: multipleURISANs()}}
}

// inFront are the matchers that no policy can turn off; methods says that some entry names one.
func inFront(methods bool) []*fieldMatcher {
	malformed := single(uriSAN, stringMatch(test{resources.MatchRegularExpression, malformedSPIFFEID}))
	out := []*fieldMatcher{
		{Predicate: multipleURISANs(), OnMatch: action(NameMultipleURISANs, true)},
		{Predicate: malformed, OnMatch: action(NameMalformedURISAN, true)},
	}
	if methods {
		out = append(out, &fieldMatcher{Predicate: unusualMethod, OnMatch: action(NameUnusualMethod, true)})
	}
	return out
}

func multipleURISANs() *predicate {
	return single(uriSAN, &stringMatcher{MatchPattern: &xdsmatcher.StringMatcher_Contains{Contains: ","}})
}

// malformedSPIFFEID is for what begins like a SPIFFE ID and is none of a workload: it has no path, an upper-case trust
// domain, a character that none has, or a segment that is empty, `.` or `..`. What does not begin so, no entry allows.
const malformedSPIFFEID = `(?s)spiffe://(?:[^/]*|[^/]*[A-Z].*|.*[^a-zA-Z0-9._/-].*|(?:.*/)?(?:/.*)?|.*/\.{1,2}(?:/.*)?)`

// anyOf is an or_matcher, which Envoy refuses for a single element.
func anyOf(list []*predicate) *predicate {
	if len(list) == 1 {
		return list[0]
	}
	return &predicate{MatchType: &wrappedOr{OrMatcher: &predicateList{Predicate: list}}}
}

// allOf is an and_matcher, which Envoy refuses for a single element.
func allOf(list []*predicate) *predicate {
	if len(list) == 1 {
		return list[0]
	}
	return &predicate{MatchType: &wrappedAnd{AndMatcher: &predicateList{Predicate: list}}}
}

func single(input *extension, value *stringMatcher) *predicate {
	return &predicate{MatchType: &wrappedSingle{SinglePredicate: &singleTest{Input: input, Matcher: &wrappedValue{ValueMatch: value}}}}
}

func stringMatch(t test) *stringMatcher {
	switch t.kind {
	case resources.MatchPrefix:
		return &stringMatcher{MatchPattern: &xdsmatcher.StringMatcher_Prefix{Prefix: t.value}}
	case resources.MatchRegularExpression:
		return &stringMatcher{MatchPattern: &xdsmatcher.StringMatcher_SafeRegex{SafeRegex: &xdsmatcher.RegexMatcher{
			EngineType: &xdsmatcher.RegexMatcher_GoogleRe2{GoogleRe2: &xdsmatcher.RegexMatcher_GoogleRE2{}}, Regex: t.value,
		}}}
	}
	return &stringMatcher{MatchPattern: &xdsmatcher.StringMatcher_Exact{Exact: t.value}}
}

// Inputs that have no settings. All predicates share them, so nobody changes them.
var (
	uriSAN = typed("envoy.matching.inputs.uri_san", &sslinputs.UriSanInput{})
	// serverName is the SNI, in lower case. Envoy knows it only where the listener has the TLS inspector.
	serverName   = typed("envoy.matching.inputs.server_name", &networkinputs.ServerNameInput{})
	methodHeader = header(":method")
	pathHeader   = header(":path")
)

// climbs is shared, as inputs are.
var climbs = single(pathHeader, stringMatch(climbingTest))

func header(name string) *extension {
	return typed("envoy.matching.inputs.request_headers", &envoymatcher.HttpRequestHeaderMatchInput{HeaderName: name})
}

// typed packs a message that this package made. Marshalling one fails only for invalid UTF-8, which no JSON string has.
func typed(name string, m proto.Message) *extension {
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic("rbac: " + name + ": " + err.Error())
	}
	return &extension{Name: name, TypedConfig: &anypb.Any{
		TypeUrl: "type.googleapis.com/" + string(m.ProtoReflect().Descriptor().FullName()), Value: value,
	}}
}
