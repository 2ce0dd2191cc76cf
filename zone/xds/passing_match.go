package xds

import (
	"net/netip"
	"strconv"
	"strings"

	xdscore "github.com/cncf/xds/go/xds/core/v3"
	xdsmatcher "github.com/cncf/xds/go/xds/type/matcher/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	inputsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/network/v3"
	ipv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/input_matchers/ip/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Shorter names for the parts of Envoy's matching API.
type (
	predicate     = xdsmatcher.Matcher_MatcherList_Predicate
	predicateList = xdsmatcher.Matcher_MatcherList_Predicate_PredicateList
	fieldMatcher  = xdsmatcher.Matcher_MatcherList_FieldMatcher
	single        = xdsmatcher.Matcher_MatcherList_Predicate_SinglePredicate
)

// packed marshals a message that is always valid: its texts were checked when they were written.
func packed(m proto.Message) *anypb.Any {
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic("xds: " + err.Error())
	}
	return &anypb.Any{TypeUrl: "type.googleapis.com/" + string(m.ProtoReflect().Descriptor().FullName()), Value: value}
}

// noLimit is an infinite timeout.
func noLimit() *durationpb.Duration { return durationpb.New(0) }

// choose builds the matcher that selects the filter chain of a connection.
func (p *passing) choose() *xdsmatcher.Matcher {
	list := &xdsmatcher.Matcher_MatcherList{Matchers: make([]*fieldMatcher, 1, 1+len(p.rules))}
	list.Matchers[0] = p.same.refuses
	for i := range p.rules {
		list.Matchers = append(list.Matchers, p.rules[i].matcher())
	}
	out := &xdsmatcher.Matcher{MatcherType: &xdsmatcher.Matcher_MatcherList_{MatcherList: list}}
	if p.otherwise != "" {
		out.OnNoMatch = toChain(p.otherwise)
	}
	return out
}

// toChain selects a filter chain by name.
func toChain(name string) *xdsmatcher.Matcher_OnMatch {
	return &xdsmatcher.Matcher_OnMatch{OnMatch: &xdsmatcher.Matcher_OnMatch_Action{Action: &xdscore.TypedExtensionConfig{
		Name: "filter-chain-name", TypedConfig: packed(wrapperspb.String(name)),
	}}}
}

// matcher selects the chain of the rule.
func (r *chainRule) matcher() *fieldMatcher {
	return &fieldMatcher{Predicate: r.predicate(), OnMatch: toChain(r.chain)}
}

func (r *chainRule) predicate() *predicate {
	var all []*predicate
	if len(r.prefixes) > 0 {
		all = append(all, addressIn(r.prefixes))
	}
	if r.port != 0 {
		all = append(all, textIs(&inputsv3.DestinationPortInput{}, exactly(strconv.Itoa(int(r.port)))))
	}
	if r.tls {
		all = append(all, textIs(&inputsv3.TransportProtocolInput{}, exactly("tls")))
	}
	if r.name != "" {
		name := exactly(r.name)
		if end, wild := strings.CutPrefix(r.name, "*"); wild {
			name = &xdsmatcher.StringMatcher{MatchPattern: &xdsmatcher.StringMatcher_Suffix{Suffix: end}}
		}
		all = append(all, textIs(&inputsv3.ServerNameInput{}, name))
	}
	if r.http {
		// TLS that offers http/1.1 has the same application protocol.
		all = append(all, textIs(&inputsv3.TransportProtocolInput{}, exactly("raw_buffer")),
			anyOf(textIs(&inputsv3.ApplicationProtocolInput{}, &xdsmatcher.StringMatcher{
				MatchPattern: &xdsmatcher.StringMatcher_Prefix{Prefix: "'http/1"}}),
				textIs(&inputsv3.ApplicationProtocolInput{}, exactly("'h2c'"))))
	}
	if len(all) == 1 {
		return all[0]
	}
	return &predicate{MatchType: &xdsmatcher.Matcher_MatcherList_Predicate_AndMatcher{AndMatcher: &predicateList{Predicate: all}}}
}

func anyOf(all ...*predicate) *predicate {
	return &predicate{MatchType: &xdsmatcher.Matcher_MatcherList_Predicate_OrMatcher{OrMatcher: &predicateList{Predicate: all}}}
}

func exactly(text string) *xdsmatcher.StringMatcher {
	return &xdsmatcher.StringMatcher{MatchPattern: &xdsmatcher.StringMatcher_Exact{Exact: text}}
}

func textIs(input proto.Message, text *xdsmatcher.StringMatcher) *predicate {
	return &predicate{MatchType: &xdsmatcher.Matcher_MatcherList_Predicate_SinglePredicate_{SinglePredicate: &single{
		Input:   &xdscore.TypedExtensionConfig{Name: "input", TypedConfig: packed(input)},
		Matcher: &xdsmatcher.Matcher_MatcherList_Predicate_SinglePredicate_ValueMatch{ValueMatch: text},
	}}}
}

// addressIn tests the address that the application dialled.
func addressIn(prefixes []netip.Prefix) *predicate {
	ranges := &ipv3.Ip{StatPrefix: captureListener}
	for _, prefix := range prefixes {
		ranges.CidrRanges = append(ranges.CidrRanges, &corev3.CidrRange{AddressPrefix: prefix.Addr().String(),
			PrefixLen: wrapperspb.UInt32(uint32(prefix.Bits()))})
	}
	return &predicate{MatchType: &xdsmatcher.Matcher_MatcherList_Predicate_SinglePredicate_{SinglePredicate: &single{
		Input: &xdscore.TypedExtensionConfig{Name: "input", TypedConfig: packed(&inputsv3.DestinationIPInput{})},
		Matcher: &xdsmatcher.Matcher_MatcherList_Predicate_SinglePredicate_CustomMatch{
			CustomMatch: &xdscore.TypedExtensionConfig{Name: "ip", TypedConfig: packed(ranges)}},
	}}}
}
