package access

import (
	"bytes"
	"encoding/json"
)

// member is a member of an object.
type member struct {
	name  []byte
	value json.RawMessage
}

func isObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

func isArray(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '[' }

// firstMember cuts the first member off what is left of a canonical object, which has no blanks and sorted names; ok is false
// at its end.
func firstMember(rest json.RawMessage) (m member, after json.RawMessage, ok bool) {
	if len(rest) == 0 || rest[0] == '}' {
		return m, nil, false
	}
	n := valueEnd(rest)
	m.name = nameOf(rest[:n])
	rest = rest[min(n+1, len(rest)):]
	n = valueEnd(rest)
	m.value = rest[:n]
	return m, rest[min(n+1, len(rest)):], true
}

// nameOf returns the name that raw is the text of, as a part of raw if it can.
func nameOf(raw json.RawMessage) []byte {
	if len(raw) > 1 && bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	var name string
	if json.Unmarshal(raw, &name) != nil {
		return raw
	}
	return []byte(name)
}

// firstElement cuts the first element off what is left of a canonical array; ok is false at its end.
func firstElement(rest json.RawMessage) (element, after json.RawMessage, ok bool) {
	if len(rest) == 0 || rest[0] == ']' {
		return nil, nil, false
	}
	n := valueEnd(rest)
	return rest[:n], rest[min(n+1, len(rest)):], true
}

// length returns how many elements a canonical array has.
func length(array json.RawMessage) (n int) {
	for _, rest, ok := firstElement(array[1:]); ok; _, rest, ok = firstElement(rest) {
		n++
	}
	return n
}

// valueEnd returns the end of the value at the start of canonical JSON.
func valueEnd(raw []byte) int {
	depth, text := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			if text = !text; !text && depth == 0 {
				return i + 1
			}
		case text:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth <= 0 {
				return i + 1 + min(depth, 0)
			}
		case depth == 0 && (c == ',' || c == ':'):
			return i
		}
	}
	return len(raw)
}
