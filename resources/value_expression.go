package resources

import (
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// ValueExpression rewrites an RE2 expression for the value of a header, a parameter or a path to one that Envoy's RE2
// takes, which reads bytes and does not know all that Go's does (`\p{Letter}`, `\x{200b}`): Envoy rejects the whole
// configuration that has one of those. steps is an upper bound of the size of its program. It returns an error if the
// expression is none, is too long or too big, or has a character outside ASCII that it asks for.
func ValueExpression(expr string) (rewritten string, steps int, err error) {
	if len(expr) > maxRegexBytes {
		return "", 0, errLength
	}
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return "", 0, err
	}
	if steps = programSize(re); steps > maxProgramSize {
		return "", steps, errProgram
	}
	if re, err = onlyBytes(re); err != nil {
		return "", 0, err
	}
	return strings.ReplaceAll(re.String(), string(rune(maxByte)), `\xff`), steps, nil
}

// onlyBytes takes the characters outside ASCII out of the classes of re, other than those of "anything but".
func onlyBytes(re *syntax.Regexp) (*syntax.Regexp, error) {
	out := *re
	switch re.Op {
	case syntax.OpNoMatch:
		return nothing(), nil
	case syntax.OpLiteral:
		if slices.ContainsFunc(re.Rune, func(r rune) bool { return r > maxASCII }) {
			return nil, errValueNotASCII
		}
	case syntax.OpCharClass:
		return byteClass(re.Rune), nil
	}
	out.Sub = make([]*syntax.Regexp, len(re.Sub))
	for i, sub := range re.Sub {
		kept, err := onlyBytes(sub)
		if err != nil {
			return nil, err
		}
		out.Sub[i] = kept
	}
	return &out, nil
}

// byteClass returns a class of the bytes in ranges, pairs of low and high.
func byteClass(ranges []rune) *syntax.Regexp {
	var out []rune
	for i := 0; i+1 < len(ranges); i += 2 {
		low, high := ranges[i], min(ranges[i+1], maxASCII)
		if ranges[i+1] == utf8.MaxRune {
			low, high = min(low, maxASCII+1), maxByte
		}
		if low <= high {
			out = append(out, low, high)
		}
	}
	if len(out) == 0 {
		return nothing()
	}
	return &syntax.Regexp{Op: syntax.OpCharClass, Rune: out}
}
