package resources

import (
	"errors"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxASCII = 0x7f
	// maxByte stands for the last byte in the classes of a byteForm.
	maxByte = 0xff
)

// byteForm converts expressions to the form that Envoy's RE2 reads: bytes, not runes.
type byteForm struct {
	// without is a character that the result matches nowhere; negative for none.
	without rune
	// notASCII is the error for an expression that asks for a character outside ASCII.
	notASCII error
}

var (
	// pathBytes is the form for whole paths, which end where the query begins. Envoy responds with 400 to a path that
	// contains a character outside ASCII unencoded.
	pathBytes = byteForm{'?', errors.New("a path has only ASCII characters: write other characters percent-encoded")}
	// valueBytes is the form for values of headers and parameters.
	valueBytes = byteForm{-1, errors.New("it asks for a character outside ASCII, and proxies compare bytes")}
)

// of returns re in this form. Characters outside ASCII leave its classes, other than those of "anything but".
func (f byteForm) of(re *syntax.Regexp) (*syntax.Regexp, error) {
	out := *re
	switch re.Op {
	case syntax.OpNoMatch:
		return nothing(), nil
	case syntax.OpLiteral:
		if slices.ContainsFunc(re.Rune, func(r rune) bool { return r > maxASCII }) {
			return nil, f.notASCII
		}
		if slices.Contains(re.Rune, f.without) {
			return nothing(), nil
		}
	case syntax.OpAnyChar:
		if f.without >= 0 {
			return f.class([]rune{0, utf8.MaxRune}), nil
		}
	case syntax.OpAnyCharNotNL:
		if f.without >= 0 {
			return f.class([]rune{0, '\n' - 1, '\n' + 1, utf8.MaxRune}), nil
		}
	case syntax.OpCharClass:
		return f.class(re.Rune), nil
	}
	out.Sub = make([]*syntax.Regexp, len(re.Sub))
	for i, sub := range re.Sub {
		kept, err := f.of(sub)
		if err != nil {
			return nil, err
		}
		out.Sub[i] = kept
	}
	return &out, nil
}

// class returns a class of the bytes in ranges, pairs of low and high. A range without an upper bound ("anything but")
// includes every byte.
func (f byteForm) class(ranges []rune) *syntax.Regexp {
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
		if low <= f.without && f.without <= high {
			keep(low, f.without-1)
			low = f.without + 1
		}
		keep(low, high)
	}
	if len(out) == 0 {
		return nothing()
	}
	return &syntax.Regexp{Op: syntax.OpCharClass, Rune: out}
}

// nothing matches no path and no value. It is a byte that no header contains, because Envoy does not read Go's notation
// for an empty class.
func nothing() *syntax.Regexp { return &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{0}} }

// writtenOut returns the text of an expression in a byteForm.
func writtenOut(re *syntax.Regexp) string {
	return strings.ReplaceAll(re.String(), string(rune(maxByte)), `\xff`)
}
