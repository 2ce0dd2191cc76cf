package resources

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxProgramSize limits the number of steps in the compiled expression, with repetitions expanded. Envoy rejects
	// the whole configuration if an expression is too big for its RE2; that limit is far above this one.
	maxProgramSize = 20_000
	// maxRespelledSize limits the same number for a deny, which also matches all other spellings.
	maxRespelledSize = 10 * maxProgramSize
	maxASCII         = 0x7f
	maxByte          = 0xff
)

var (
	errAnchor   = errors.New("anchors may stand only at the ends: the expression matches whole paths anyway")
	errProgram  = errors.New("the expression is too big with its repetitions written out")
	errNotASCII = errors.New("a path has only ASCII characters: write other characters percent-encoded")
	// errValueNotASCII is errNotASCII of a header or parameter.
	errValueNotASCII = errors.New("it asks for a character outside ASCII, and proxies compare bytes")
	errLength        = fmt.Errorf("the expression is longer than %d bytes", maxRegexBytes)
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
	if re, err = onlyPathRunes(re); err != nil {
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
	return strings.ReplaceAll(re.String(), string(rune(maxByte)), `\xff`), nil
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

// onlyPathRunes removes the question mark from everything that re can match, and converts re to the form that Envoy's
// RE2 reads: bytes, not runes. It refuses characters outside ASCII: Envoy responds with 400 to a path that contains one
// unencoded.
func onlyPathRunes(re *syntax.Regexp) (*syntax.Regexp, error) {
	out := *re
	switch re.Op {
	case syntax.OpNoMatch:
		return nothing(), nil
	case syntax.OpLiteral:
		if slices.ContainsFunc(re.Rune, func(r rune) bool { return r > maxASCII }) {
			return nil, errNotASCII
		}
		if slices.Contains(re.Rune, '?') {
			return nothing(), nil
		}
	case syntax.OpAnyChar:
		return pathClass([]rune{0, utf8.MaxRune}), nil
	case syntax.OpAnyCharNotNL:
		return pathClass([]rune{0, '\n' - 1, '\n' + 1, utf8.MaxRune}), nil
	case syntax.OpCharClass:
		return pathClass(re.Rune), nil
	}
	out.Sub = make([]*syntax.Regexp, len(re.Sub))
	for i, sub := range re.Sub {
		kept, err := onlyPathRunes(sub)
		if err != nil {
			return nil, err
		}
		out.Sub[i] = kept
	}
	return &out, nil
}

// nothing matches no path. It is a byte that no header contains, because Envoy does not read Go's notation for an empty
// class.
func nothing() *syntax.Regexp { return &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{0}} }

// pathClass returns a class of the runes in ranges, pairs of low and high, that a path may contain. A range without an
// upper bound ("anything but") includes every byte; maxByte stands for the last one.
func pathClass(ranges []rune) *syntax.Regexp {
	var out []rune
	keep := func(low, high rune) {
		if low <= high {
			out = append(out, low, high)
		}
	}
	for i := 0; i+1 < len(ranges); i += 2 {
		low, high := ranges[i], min(ranges[i+1], maxASCII)
		if ranges[i+1] == utf8.MaxRune {
			low, high = min(low, maxASCII+1), maxByte
		}
		if low <= '?' && '?' <= high {
			keep(low, '?'-1)
			low = '?' + 1
		}
		keep(low, high)
	}
	if len(out) == 0 {
		return nothing()
	}
	return &syntax.Regexp{Op: syntax.OpCharClass, Rune: out}
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
