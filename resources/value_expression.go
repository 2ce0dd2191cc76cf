package resources

import "regexp/syntax"

// ValueExpression rewrites an RE2 expression for the value of a header, a parameter or a path for Envoy's RE2, which
// reads bytes and lacks some of Go's syntax (`\p{Letter}`, `\x{200b}`): Envoy rejects a whole configuration with such
// an expression. steps is an upper bound of the size of its program. ValueExpression fails if the expression is
// invalid, too long or too big, or requires a character outside ASCII.
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
	if re, err = valueBytes.of(re); err != nil {
		return "", 0, err
	}
	return writtenOut(re), steps, nil
}
