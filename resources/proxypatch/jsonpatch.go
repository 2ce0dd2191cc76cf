package proxypatch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// jsonOps are the operations of a JSONPatch.
var jsonOps = []string{"add", "remove", "replace", "move", "copy"}

// patchJSON returns the message with JSON patches applied to its JSON form.
func patchJSON(m proto.Message, patches []JSONPatch, b *budget) (proto.Message, error) {
	raw, err := protojson.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("%s", clean(err))
	}
	if err := b.spend(jsonWork * len(raw)); err != nil {
		return nil, err
	}
	doc, err := decodeJSON(raw)
	if err != nil {
		return nil, err
	}
	for i := range patches {
		if doc, err = patches[i].apply(doc, b); err != nil {
			return nil, fmt.Errorf("jsonPatches[%d]: %w", i, err)
		}
	}
	if raw, err = json.Marshal(doc); err != nil {
		return nil, err
	}
	if len(raw) > maxPatchedBytes {
		return nil, fmt.Errorf("the result has %d bytes, more than %d", len(raw), maxPatchedBytes)
	}
	return decode(raw, m)
}

// maxPatchedBytes bounds a resource after JSON patches, which may copy existing values.
const maxPatchedBytes = 1 << 20

func decodeJSON(raw []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

// apply returns the document after the operation. As in Kuma, `add` creates the objects on its path, `remove` of an
// absent value does nothing, and negative indexes count from the end.
func (p *JSONPatch) apply(doc any, b *budget) (any, error) {
	at, err := pointer(p.Path)
	if err != nil {
		return nil, err
	}
	value, err := p.operand(doc, b)
	if err != nil {
		return nil, err
	}
	switch p.Op {
	case "add", "copy":
		return put(doc, at, value, false)
	case "replace":
		if _, ok := lookup(doc, at); !ok {
			return nil, fmt.Errorf("replace %q: it is not there", p.Path)
		}
		return put(doc, at, value, true)
	case "remove":
		return without(doc, at), nil
	case "move":
		from, err := pointer(*p.From)
		if err != nil {
			return nil, err
		}
		return put(without(doc, from), at, value, false)
	}
	return nil, fmt.Errorf("unknown op %q", p.Op)
}

// operand returns the value that an operation writes.
func (p *JSONPatch) operand(doc any, b *budget) (any, error) {
	switch p.Op {
	case "move", "copy":
		if p.From == nil {
			return nil, fmt.Errorf("%s needs from", p.Op)
		}
		from, err := pointer(*p.From)
		if err != nil {
			return nil, err
		}
		value, ok := lookup(doc, from)
		if !ok {
			return nil, fmt.Errorf("%s from %q: it is not there", p.Op, *p.From)
		}
		raw, err := json.Marshal(value) // a copy, because the two places change independently
		if err != nil {
			return nil, err
		}
		if len(raw) > maxPatchedBytes {
			return nil, fmt.Errorf("%s from %q: it has %d bytes, more than %d", p.Op, *p.From, len(raw), maxPatchedBytes)
		}
		if err := b.spend(jsonWork * len(raw)); err != nil {
			return nil, err
		}
		return decodeJSON(raw)
	case "add", "replace":
		if len(p.Value) == 0 {
			return nil, fmt.Errorf("%s needs a value", p.Op)
		}
		if err := b.spend(jsonWork * len(p.Value)); err != nil {
			return nil, err
		}
		return decodeJSON(p.Value)
	}
	return nil, nil
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// pointer splits a JSON pointer. An empty one means the whole document.
func pointer(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	if path[0] != '/' {
		return nil, fmt.Errorf("%q is not a JSON pointer: it begins with /", path)
	}
	parts := strings.Split(path[1:], "/")
	if len(parts) > maxPointer {
		return nil, fmt.Errorf("%q has more than %d parts", path, maxPointer)
	}
	for i, part := range parts {
		parts[i] = unescape.Replace(part)
	}
	return parts, nil
}

// maxPointer bounds the parts of a JSON pointer.
const maxPointer = 64

// index returns the list index that a part means; "-" means the index after the last item.
func index(part string, length int) (int, bool) {
	if part == "-" {
		return length, true
	}
	i, err := strconv.Atoi(part)
	if err != nil {
		return 0, false
	}
	if i < 0 {
		i += length
	}
	return i, i >= 0 && i <= length
}

func lookup(doc any, at []string) (any, bool) {
	for _, part := range at {
		switch v := doc.(type) {
		case map[string]any:
			next, ok := v[part]
			if !ok {
				return nil, false
			}
			doc = next
		case []any:
			i, ok := index(part, len(v))
			if !ok || i == len(v) {
				return nil, false
			}
			doc = v[i]
		default:
			return nil, false
		}
	}
	return doc, true
}

// put returns the document with a value at a path: inserted before a list item, or replacing the value there.
func put(doc any, at []string, value any, replace bool) (any, error) {
	if len(at) == 0 {
		return value, nil
	}
	switch v := doc.(type) {
	case nil:
		below, err := put(nil, at[1:], value, replace)
		if err != nil {
			return nil, err
		}
		if at[0] == "-" || at[0] == "0" {
			return []any{below}, nil
		}
		return map[string]any{at[0]: below}, nil
	case map[string]any:
		below, err := put(v[at[0]], at[1:], value, replace)
		if err != nil {
			return nil, err
		}
		v[at[0]] = below
		return v, nil
	case []any:
		i, ok := index(at[0], len(v))
		if !ok {
			return nil, fmt.Errorf("%q is not a place in a list of %d", at[0], len(v))
		}
		if len(at) == 1 && !replace {
			return slices.Insert(v, i, value), nil
		}
		if i == len(v) {
			v = append(v, nil)
		}
		below, err := put(v[i], at[1:], value, replace)
		v[i] = below
		return v, err
	}
	return nil, fmt.Errorf("%q is below a value that is neither an object nor a list", at[0])
}

// without returns the document without the value at a path.
func without(doc any, at []string) any {
	if len(at) == 0 {
		return map[string]any{}
	}
	switch v := doc.(type) {
	case map[string]any:
		if below, ok := v[at[0]]; ok && len(at) > 1 {
			v[at[0]] = without(below, at[1:])
		} else {
			delete(v, at[0])
		}
		return v
	case []any:
		i, ok := index(at[0], len(v))
		if !ok || i == len(v) {
			return v
		}
		if len(at) == 1 {
			return slices.Delete(v, i, i+1)
		}
		v[i] = without(v[i], at[1:])
		return v
	}
	return doc
}
