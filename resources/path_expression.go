package resources

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
)

const (
	// maxProgramSize limits the number of steps in the compiled expression, with repetitions expanded. Envoy rejects
	// the whole configuration if an expression is too big for its RE2; that limit is far above this one.
	maxProgramSize = 20_000
	// maxRespelledSize limits the same number for a deny, which also matches all other spellings.
	maxRespelledSize = 10 * maxProgramSize
)

var (
	errAnchor  = errors.New("anchors may stand only at the ends: the expression matches whole paths anyway")
	errProgram = errors.New("the expression is too big with its repetitions written out")
	errLength  = fmt.Errorf("the expression is longer than %d bytes", maxRegexBytes)
)

// PathExpression rewrites an RE2 expression for whole paths so that it cannot match into the query that follows the
// path in Envoy's `:path`. No part of the result matches a question mark, and the result has no anchors, because an end
// anchor would refer to the end of the query. It returns an error if the rewritten expression would have another
// meaning, or is too big for Envoy.
func PathExpression(expr string) (string, error) { return pathExpression(expr, false) }

// DeniedPathExpression is PathExpression for a deny. The result also matches the other spellings of a path
// (RespelledExpression).
func DeniedPathExpression(expr string) (string, error) { return pathExpression(expr, true) }

func pathExpression(expr string, respelled bool) (string, error) {
	if len(expr) > maxRegexBytes {
		return "", errLength
	}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return "", err
	}
	if re, err = stripAnchors(re, true, true); err != nil {
		return "", err
	}
	if re, err = pathBytes.of(re); err != nil {
		return "", err
	}
	limit := maxProgramSize
	if programSize(re) > limit {
		return "", errProgram
	}
	if respelled {
		re, limit = respell(re), maxRespelledSize
	}
	if programSize(re) > limit {
		return "", errProgram
	}
	return writtenOut(re), nil
}

// stripAnchors removes the anchors at the ends of re. first and last report whether re is at the start and at the end
// of the expression.
func stripAnchors(re *syntax.Regexp, first, last bool) (*syntax.Regexp, error) {
	switch re.Op {
	case syntax.OpBeginText, syntax.OpBeginLine:
		if !first {
			return nil, errAnchor
		}
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}, nil
	case syntax.OpEndText, syntax.OpEndLine:
		if !last {
			return nil, errAnchor
		}
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}, nil
	}
	out := *re
	out.Sub = slices.Clone(re.Sub)
	for i, sub := range re.Sub {
		atFirst, atLast := false, false
		switch re.Op {
		case syntax.OpConcat:
			atFirst, atLast = first && i == 0, last && i == len(re.Sub)-1
		case syntax.OpAlternate, syntax.OpCapture:
			atFirst, atLast = first, last
		}
		stripped, err := stripAnchors(sub, atFirst, atLast)
		if err != nil {
			return nil, err
		}
		out.Sub[i] = stripped
	}
	return &out, nil
}

// programSize returns an upper bound of the number of steps that re compiles to.
func programSize(re *syntax.Regexp) int {
	own := 1
	switch re.Op {
	case syntax.OpLiteral, syntax.OpCharClass:
		own += len(re.Rune)
	}
	for _, sub := range re.Sub {
		own += 2 + programSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		own *= max(re.Min, re.Max, 1) + 1
	}
	return own
}
