package resources

import "regexp/syntax"

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
	if re, err = valueBytes.of(re); err != nil {
		return "", 0, err
	}
	return writtenOut(re), steps, nil
}
