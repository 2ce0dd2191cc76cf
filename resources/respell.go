package resources

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
)

// ReservedPathCharacters are the characters that Envoy leaves plain or percent-encoded, as the client wrote them, when
// it normalises a path. Many applications treat `/a:b` and `/a%3Ab` as equal.
const ReservedPathCharacters = "!$&'()*+,:;=@[]#"

// RespelledExpression returns an expression that matches every path that expr matches, in every spelling: letters in
// either case and in full width, reserved characters plain or escaped, hexadecimal digits in either case, and slashes
// with the parts that applications drop around them (parameters, empty segments, blanks, dots at the end of a segment).
// It fails if expr is not a valid expression.
func RespelledExpression(expr string) (string, error) {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return "", err
	}
	return respell(re).String(), nil
}

func respell(re *syntax.Regexp) *syntax.Regexp {
	switch re.Op {
	case syntax.OpLiteral:
		return respellLiteral(re)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return respellClass(re)
	case syntax.OpStar, syntax.OpPlus:
		if isClass(re.Sub[0]) && spansEscapes(re.Sub[0]) {
			return foldClass(re.Sub[0], re)
		}
	}
	out := *re
	out.Sub = make([]*syntax.Regexp, len(re.Sub))
	for i, sub := range re.Sub {
		out.Sub[i] = respell(sub)
	}
	return &out
}

// respellLiteral splits a literal into slashes, escapes and the rest, and respells each part.
func respellLiteral(re *syntax.Regexp) *syntax.Regexp {
	var out strings.Builder
	for i := 0; i < len(re.Rune); i++ {
		c := re.Rune[i]
		if c == '%' && i+2 < len(re.Rune) && isHexRune(re.Rune[i+1]) && isHexRune(re.Rune[i+2]) {
			_, _ = fmt.Sscanf(string(re.Rune[i+1:i+3]), "%02x", &c)
			i += 2
			if c > maxASCII {
				fmt.Fprintf(&out, "%%%02x", c)
				continue
			}
		}
		if c == '/' {
			out.WriteString(PathSeparator)
		} else {
			out.WriteString(PathRuneSpellings(c))
		}
	}
	return mustParse("(?i:" + out.String() + ")")
}

// respellClass adds the other case of letters and the escapes of reserved characters to a class.
func respellClass(re *syntax.Regexp) *syntax.Regexp {
	var spellings []string
	for _, c := range ReservedPathCharacters {
		if inClass(re, c) {
			spellings = append(spellings, EscapeExpression(byte(c)))
		}
	}
	if inClass(re, '/') {
		spellings = append(spellings, "(?i:"+PathSeparator+")")
	}
	folded := foldClass(re, re)
	if len(spellings) == 0 {
		return folded
	}
	return &syntax.Regexp{Op: syntax.OpAlternate, Sub: []*syntax.Regexp{folded, mustParse(strings.Join(spellings, "|"))}}
}

// foldClass returns re, which is the class or repeats it, with the other case of all ASCII letters of the class. The
// case-insensitive flag does not work here: it would remove letters from a negated class.
func foldClass(class, re *syntax.Regexp) *syntax.Regexp {
	folded := *class
	if class.Op == syntax.OpCharClass {
		folded.Rune = slices.Clone(class.Rune)
		for i, high := range folded.Rune { // no path has higher bytes, and large classes are slow to print
			folded.Rune[i] = min(high, maxByte)
		}
		for lower := 'a'; lower <= 'z'; lower++ {
			for _, pair := range [][2]rune{{lower, lower - 'a' + 'A'}, {lower - 'a' + 'A', lower}} {
				if inClass(class, pair[0]) && !inClass(class, pair[1]) {
					folded.Rune = append(folded.Rune, pair[1], pair[1])
				}
			}
		}
		folded.Rune = sortedRanges(folded.Rune)
	}
	if re == class {
		return &folded
	}
	out := *re
	out.Sub = []*syntax.Regexp{&folded}
	return &out
}

// sortedRanges sorts pairs of low and high by low, and joins adjacent ones.
func sortedRanges(ranges []rune) []rune {
	pairs := make([][2]rune, 0, len(ranges)/2)
	for i := 0; i+1 < len(ranges); i += 2 {
		pairs = append(pairs, [2]rune{ranges[i], ranges[i+1]})
	}
	slices.SortFunc(pairs, func(a, b [2]rune) int { return int(a[0] - b[0]) })
	out := ranges[:0]
	for _, p := range pairs {
		if n := len(out); n > 0 && p[0] <= out[n-1]+1 {
			out[n-1] = max(out[n-1], p[1])
			continue
		}
		out = append(out, p[0], p[1])
	}
	return out
}

func isClass(re *syntax.Regexp) bool {
	return re.Op == syntax.OpCharClass || re.Op == syntax.OpAnyChar || re.Op == syntax.OpAnyCharNotNL
}

// spansEscapes reports whether a repetition of the class already matches any escape.
func spansEscapes(class *syntax.Regexp) bool {
	for _, c := range "%0123456789abcdefABCDEF" {
		if !inClass(class, c) {
			return false
		}
	}
	return true
}

// inClass reports whether the class contains c. The class `.` contains every character that a path can have.
func inClass(class *syntax.Regexp, c rune) bool {
	if class.Op != syntax.OpCharClass {
		return true
	}
	for i := 0; i+1 < len(class.Rune); i += 2 {
		if class.Rune[i] <= c && c <= class.Rune[i+1] {
			return true
		}
	}
	return false
}

func isHexRune(c rune) bool { return strings.ContainsRune("0123456789abcdefABCDEF", c) }

// EscapeExpression returns an expression that matches the percent-encoding of a byte, with digits of either case.
func EscapeExpression(c byte) string {
	out := "%"
	for _, digit := range fmt.Sprintf("%02x", c) {
		if digit >= 'a' {
			out += fmt.Sprintf("[%c%c]", digit, digit-'a'+'A')
		} else {
			out += string(digit)
		}
	}
	return out
}

// mustParse parses an expression that this file builds.
func mustParse(expr string) *syntax.Regexp {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic("resources: " + expr + ": " + err.Error())
	}
	return re
}
