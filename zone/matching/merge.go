package matching

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// appendPrefix is the prefix of the fields whose arrays are concatenated. Source: seed 000, "Merging".
const appendPrefix = "append"

// MergeConfs merges confs in order, so that the last wins, by the rules of RFC 7396: objects merge field by field, null
// removes a field, anything else replaces. Arrays replace too, except in fields whose name begins with `append`: these
// are concatenated. No confs, or empty ones, yield `{}`. The result is canonical: fields are sorted, numbers are
// unchanged. It fails if one of the confs is not a JSON value.
func MergeConfs(confs ...json.RawMessage) (json.RawMessage, error) {
	var merged any = map[string]any{}
	for i, raw := range confs {
		v, err := decodeConf(raw)
		if err != nil {
			return nil, fmt.Errorf("conf %d: %w", i, err)
		}
		merged = mergePatch(merged, v)
	}
	return encodeConf(merged), nil
}

// mergePatch returns target with patch applied. It changes neither argument; the result may share parts with both.
func mergePatch(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	t, _ := target.(map[string]any)
	out := make(map[string]any, len(t)+len(p))
	for name, v := range t {
		out[name] = v
	}
	for name, v := range p {
		if v == nil {
			delete(out, name)
			continue
		}
		out[name] = mergeField(name, out[name], v)
	}
	return out
}

func mergeField(name string, target, patch any) any {
	add, ok := patch.([]any)
	if !ok || !strings.HasPrefix(name, appendPrefix) {
		return mergePatch(target, patch)
	}
	have, _ := target.([]any)
	out := make([]any, 0, len(have)+len(add))
	return append(append(out, have...), add...)
}

// decodeConf decodes one JSON value. An absent value is an empty object.
func decodeConf(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return map[string]any{}, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one value")
	}
	return v, nil
}

// encodeConf encodes a decoded value in canonical form. Decoded JSON always encodes.
func encodeConf(v any) json.RawMessage {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("a decoded conf does not encode: %v", err))
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
