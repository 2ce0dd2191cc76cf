package messages

import "fmt"

// CheckJSON counts the values of a JSON text before it is decoded. It returns ErrDense for more than the given number,
// or for lists and objects that nest deeper. Like Check, it does not otherwise validate the text.
func CheckJSON(text []byte, values, depth int) error {
	found, open := 1, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = endOfString(text, i)
			continue
		case '{', '[':
			if open++; open > depth {
				return fmt.Errorf("%w: lists and objects nest deeper than %d", ErrDense, depth)
			}
		case '}', ']':
			open--
			continue
		case ',':
		default:
			continue
		}
		if found++; found > values {
			return fmt.Errorf("%w: more than %d values", ErrDense, values)
		}
	}
	return nil
}

// endOfString returns the end of the string that begins at start, or of the text.
func endOfString(text []byte, start int) int {
	for i := start + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(text)
}
