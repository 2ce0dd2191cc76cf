package resources

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// ReservedPathCharacters are those that Envoy leaves as a client wrote them, plain or percent-encoded, when it normalises a
// path: many applications read `/a:b` and `/a%3Ab` as one.
const ReservedPathCharacters = "!$&'()*+,:;=@[]#"

// RespelledExpression matches every path that expr matches, and every other spelling of it: a reserved character in expr matches its
// escape too, the escape of one matches the character, and digits of escapes match in either case. It fails where expr is no
// expression.
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
			return re
		}
	}
	out := *re
	out.Sub = make([]*syntax.Regexp, len(re.Sub))
	for i, sub := range re.Sub {
		out.Sub[i] = respell(sub)
	}
	return &out
}

// respellLiteral takes a literal apart into reserved characters, escapes, and the rest.
func respellLiteral(re *syntax.Regexp) *syntax.Regexp {
	out := &syntax.Regexp{Op: syntax.OpConcat}
	plain := func(r ...rune) {
		if n := len(out.Sub); n > 0 && out.Sub[n-1].Op == syntax.OpLiteral && out.Sub[n-1].Flags == re.Flags {
			out.Sub[n-1].Rune = append(out.Sub[n-1].Rune, r...)
			return
		}
		out.Sub = append(out.Sub, &syntax.Regexp{Op: syntax.OpLiteral, Flags: re.Flags, Rune: r})
	}
	for i := 0; i < len(re.Rune); i++ {
		c, escaped := re.Rune[i], false
		if c == '%' && i+2 < len(re.Rune) {
			var code rune
			if _, err := fmt.Sscanf(string(re.Rune[i+1:i+3]), "%02x", &code); err == nil && isHexRune(re.Rune[i+1]) && isHexRune(re.Rune[i+2]) {
				c, escaped = code, true
				i += 2
			}
		}
		switch {
		case isReservedInPaths(c):
			out.Sub = append(out.Sub, mustParse("(?:"+regexp.QuoteMeta(string(c))+"|"+EscapeExpression(byte(c))+")"))
		case escaped:
			out.Sub = append(out.Sub, mustParse(EscapeExpression(byte(c))))
		default:
			plain(c)
		}
	}
	if len(out.Sub) == 1 {
		return out.Sub[0]
	}
	return out
}

// respellClass adds the escapes of the reserved characters in a class.
func respellClass(re *syntax.Regexp) *syntax.Regexp {
	var escapes []string
	for _, c := range ReservedPathCharacters {
		if inClass(re, c) {
			escapes = append(escapes, EscapeExpression(byte(c)))
		}
	}
	if len(escapes) == 0 {
		return re
	}
	return &syntax.Regexp{Op: syntax.OpAlternate, Sub: []*syntax.Regexp{re, mustParse(strings.Join(escapes, "|"))}}
}

func isClass(re *syntax.Regexp) bool {
	return re.Op == syntax.OpCharClass || re.Op == syntax.OpAnyChar || re.Op == syntax.OpAnyCharNotNL
}

// spansEscapes: a repetition of such a class matches any escape already.
func spansEscapes(class *syntax.Regexp) bool {
	for _, c := range "%0123456789abcdefABCDEF" {
		if !inClass(class, c) {
			return false
		}
	}
	return true
}

// inClass: `.` has every character that a path can have.
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

func isReservedInPaths(c rune) bool { return strings.ContainsRune(ReservedPathCharacters, c) }

func isHexRune(c rune) bool { return strings.ContainsRune("0123456789abcdefABCDEF", c) }

// EscapeExpression matches the percent-encoding of a byte, with digits of either case.
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

// mustParse is for expressions that this file writes.
func mustParse(expr string) *syntax.Regexp {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic("resources: " + expr + ": " + err.Error())
	}
	return re
}
