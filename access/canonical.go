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

// fewMembers is how many members an object has at most, in most cases.
const fewMembers = 8

// members splits a canonical object: it has no blanks, and its names are sorted.
func members(object json.RawMessage) []member {
	out := make([]member, 0, fewMembers)
	for rest := object[1:]; len(rest) > 0 && rest[0] != '}'; {
		n := valueEnd(rest)
		m := member{name: nameOf(rest[:n])}
		rest = rest[min(n+1, len(rest)):]
		n = valueEnd(rest)
		m.value = rest[:n]
		out = append(out, m)
		rest = rest[min(n+1, len(rest)):]
	}
	return out
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

// elements splits a canonical array.
func elements(array json.RawMessage) []json.RawMessage {
	var out []json.RawMessage
	for rest := array[1:]; len(rest) > 0 && rest[0] != ']'; {
		n := valueEnd(rest)
		out = append(out, rest[:n])
		rest = rest[min(n+1, len(rest)):]
	}
	return out
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
