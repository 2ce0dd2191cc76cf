package rbac

import (
	"cmp"
	"slices"

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

// listMatcher writes steps as a matcher list. The matchers that no policy can turn off come first: Envoy joins several
// URI SANs by a comma, so a prefix would match the first of them and an exact deny none. Since they look up the URI
// SAN, they also end the matching of a plaintext connection, which Envoy then denies. The end of the list denies
// everything.
//
// Its matchers are encoded, because most of them are in other lists, too. The error is why Envoy would refuse one.
func listMatcher(list []*step, by toldBy) (*xdsmatcher.Matcher, error) {
	matchers := slices.Grow(frontmostEncoded.by(by), len(list))
	var refused error
	for _, s := range list {
		m := s.matcher()
		matchers, refused = append(matchers, m.message), cmp.Or(refused, m.refused)
	}
	return matcherList(matchers, deniedByDefault), refused
}

// matcher tests the step's entries. Lists share it, so it must not be changed.
func (s *step) matcher() *encoded {
	if s.made == nil {
		return s.encode()
	}
	return s.made.Again(s.key, func() any { return s.encode() }).(*encoded)
}

func (s *step) encode() *encoded {
	predicates := make([]*predicate, len(s.entries))
	for i := range s.entries {
		predicates[i] = entryPredicate(&s.entries[i])
	}
	return encode(&fieldMatcher{Predicate: anyOf(predicates), OnMatch: s.decision})
}

// matcherList evaluates matchers in order. otherwise, which may be nil, applies when none has an answer.
func matcherList(matchers []*fieldMatcher, otherwise *onMatch) *xdsmatcher.Matcher {
	return &xdsmatcher.Matcher{
		MatcherType: &xdsmatcher.Matcher_MatcherList_{MatcherList: &xdsmatcher.Matcher_MatcherList{Matchers: matchers}},
		OnNoMatch:   otherwise,
	}
}

// ask makes a matcher the consequence of another.
func ask(m *xdsmatcher.Matcher) *onMatch { return &onMatch{OnMatch: &wrappedMatcher{Matcher: m}} }

// denyAll returns the matcher that needs no input.
func denyAll() *xdsmatcher.Matcher {
	return &xdsmatcher.Matcher{OnNoMatch: deniedByDefault}
}

func action(name string, deny bool) *onMatch {
	a := &rbacconfig.Action{Name: name, Action: rbacconfig.RBAC_ALLOW}
	if deny {
		a.Action = rbacconfig.RBAC_DENY
	}
	return &onMatch{OnMatch: &wrappedActions{Action: typed("envoy.filters.rbac.action", a)}}
}

// entryPredicate tests the identity first: that is cheapest, and the same for every request of a connection.
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

// everybody matches every client that reaches it: multipleURISANs was evaluated before and was false.
func everybody() *predicate {
	return &predicate{MatchType: &wrappedNot{NotMatcher: multipleURISANs()}}
}

// front holds the matchers that no policy can turn off.
type front struct {
	always         []*fieldMatcher
	methods, paths *fieldMatcher // where some entry names a method or a path
}

// by returns the matchers for rules that are told by these properties. The caller may append to them.
func (f *front) by(by toldBy) []*fieldMatcher {
	out := slices.Clone(f.always)
	if by.methods {
		out = append(out, f.methods)
	}
	if by.paths {
		out = append(out, f.paths)
	}
	return out
}

// frontmost begins each matcher, and deniedByDefault ends it. frontmostEncoded is frontmost, for lists.
var (
	frontmost = front{
		always: []*fieldMatcher{
			{Predicate: multipleURISANs(), OnMatch: action(NameMultipleURISANs, true)},
			{Predicate: single(uriSAN, stringMatch(test{resources.MatchRegularExpression, malformedSPIFFEID})),
				OnMatch: action(NameMalformedURISAN, true)},
		},
		methods: &fieldMatcher{Predicate: unusualMethod, OnMatch: action(NameUnusualMethod, true)},
		paths:   &fieldMatcher{Predicate: elsewhere, OnMatch: action(NameOtherPath, true)},
	}
	frontmostEncoded = front{
		always:  []*fieldMatcher{encode(frontmost.always[0]).message, encode(frontmost.always[1]).message},
		methods: encode(frontmost.methods).message, paths: encode(frontmost.paths).message,
	}
	deniedByDefault = action(NameDefault, true)
)

func multipleURISANs() *predicate {
	return single(uriSAN, &stringMatcher{MatchPattern: &xdsmatcher.StringMatcher_Contains{Contains: ","}})
}

// malformedSPIFFEID matches a URI that begins like a SPIFFE ID but is not one of a workload: it has no path, an
// upper-case trust domain, an illegal character, or a segment that is empty, `.` or `..`. No entry allows a URI with
// any other beginning.
const malformedSPIFFEID = `(?s)spiffe://(?:[^/]*|[^/]*[A-Z].*|.*[^a-zA-Z0-9._/-].*|(?:.*/)?(?:/.*)?|.*/\.{1,2}(?:/.*)?)`

// anyOf returns an or_matcher, which Envoy refuses for a single element.
func anyOf(list []*predicate) *predicate {
	if len(list) == 1 {
		return list[0]
	}
	return &predicate{MatchType: &wrappedOr{OrMatcher: &predicateList{Predicate: list}}}
}

// allOf returns an and_matcher, which Envoy refuses for a single element.
func allOf(list []*predicate) *predicate {
	if len(list) == 1 {
		return list[0]
	}
	return &predicate{MatchType: &wrappedAnd{AndMatcher: &predicateList{Predicate: list}}}
}

func single(input *extension, value *stringMatcher) *predicate {
	return &predicate{MatchType: &wrappedSingle{SinglePredicate: &singleTest{Input: input,
		Matcher: &wrappedValue{ValueMatch: value}}}}
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

// Inputs without settings. All predicates share them, so they must not be changed.
var (
	uriSAN = typed("envoy.matching.inputs.uri_san", &sslinputs.UriSanInput{})
	// serverName is the SNI, in lower case. Envoy has it only if the listener has the TLS inspector.
	serverName   = typed("envoy.matching.inputs.server_name", &networkinputs.ServerNameInput{})
	methodHeader = header(":method")
	pathHeader   = header(":path")
)

// climbs is shared, like the inputs.
var climbs = single(pathHeader, stringMatch(climbingTest))

func header(name string) *extension {
	return typed("envoy.matching.inputs.request_headers", &envoymatcher.HttpRequestHeaderMatchInput{HeaderName: name})
}

// typed packs a message that this package built. Marshalling fails only for invalid UTF-8, which no JSON string has.
func typed(name string, m proto.Message) *extension {
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic("rbac: " + name + ": " + err.Error())
	}
	return &extension{Name: name, TypedConfig: &anypb.Any{
		TypeUrl: "type.googleapis.com/" + string(m.ProtoReflect().Descriptor().FullName()), Value: value,
	}}
}
