package xds

import (
	"unicode/utf8"

	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/causeway-mesh/causeway/resources"
)

const (
	// smallProgram is below the 100 steps above which Envoy refuses an expression without an explicit limit.
	smallProgram = 80
	// largeProgram is more than what ValueExpression accepts.
	largeProgram = 1 << 20
)

// regexMatcher returns an expression of a policy in a form that Envoy accepts. If Envoy refuses one expression, it
// refuses all routes beside it, so an expression that cannot be enforced matches nothing.
func regexMatcher(expr string) *matcherv3.RegexMatcher {
	rewritten, steps, err := resources.ValueExpression(expr)
	switch {
	case err == nil:
		return sized(rewritten, steps)
	case !isASCII(expr): // compared as bytes, for what an earlier version stored
		return sized(expr, largeProgram)
	}
	return &matcherv3.RegexMatcher{Regex: `\x00`}
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// sized adds a limit to an expression that needs one.
func sized(expr string, steps int) *matcherv3.RegexMatcher {
	out := &matcherv3.RegexMatcher{Regex: expr}
	if steps > smallProgram {
		//nolint:staticcheck // deprecated for a limit in the proxy's runtime, which bootstraps of earlier versions do not have
		out.EngineType = &matcherv3.RegexMatcher_GoogleRe2{GoogleRe2: &matcherv3.RegexMatcher_GoogleRE2{MaxProgramSize: wrapperspb.UInt32(largeProgram)}}
	}
	return out
}
