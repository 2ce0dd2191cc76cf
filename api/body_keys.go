package api

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/causeway-mesh/causeway/resources"
)

// checkKeys checks the keys of a JSON value that decodes into a t. encoding/json uses the last of two keys and ignores
// case; another reader of the same body may use the first, or another one. So each key must be spelled like its field,
// and appear once.
func checkKeys(raw []byte, t reflect.Type) error {
	return (&keyCheck{dec: json.NewDecoder(bytes.NewReader(raw))}).value(t, 0)
}

type keyCheck struct{ dec *json.Decoder }

// value checks the next value. A nil type means that its fields are unknown.
func (k *keyCheck) value(t reflect.Type, depth int) error {
	token, err := k.dec.Token()
	if err != nil {
		return err
	}
	delim, opens := token.(json.Delim)
	if !opens {
		return nil
	}
	if depth >= resources.MaxDepth {
		return fmt.Errorf("it is nested deeper than %d levels", resources.MaxDepth)
	}
	fields, elem := insideOf(t)
	seen := map[string]bool{}
	for k.dec.More() {
		inner := elem
		if delim == '{' {
			if inner, err = k.key(fields, elem, seen); err != nil {
				return err
			}
		}
		if err := k.value(inner, depth+1); err != nil {
			return err
		}
	}
	_, err = k.dec.Token()
	return err
}

// key reads a key and returns the type of its value.
func (k *keyCheck) key(fields map[string]reflect.Type, elem reflect.Type, seen map[string]bool) (reflect.Type, error) {
	token, err := k.dec.Token()
	if err != nil {
		return nil, err
	}
	name, _ := token.(string)
	if seen[name] {
		return nil, fmt.Errorf("the key %q appears twice", shortKey(name))
	}
	seen[name] = true
	if fields == nil {
		return elem, nil
	}
	t, known := fields[name]
	if known {
		return t, nil
	}
	for field := range fields {
		if strings.EqualFold(field, name) {
			return nil, fmt.Errorf("unknown key %q: write %q", shortKey(name), field)
		}
	}
	return nil, fmt.Errorf("unknown key %q", shortKey(name))
}

func shortKey(name string) string { return name[:min(len(name), resources.MaxShortNameBytes)] }

// insideOf returns the fields of a struct type, or the element type of a list or map, or neither for a type that
// decodes itself.
func insideOf(t reflect.Type) (fields map[string]reflect.Type, elem reflect.Type) {
	if t == nil || decodesItself(t) || decodesItself(reflect.PointerTo(t)) {
		return nil, nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return insideOf(t.Elem())
	case reflect.Struct:
		fields = map[string]reflect.Type{}
		addFields(fields, t)
		return fields, nil
	case reflect.Slice, reflect.Array, reflect.Map:
		return nil, t.Elem()
	default:
		return nil, nil
	}
}

func decodesItself(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Unmarshaler]()) || t.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func addFields(fields map[string]reflect.Type, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			addFields(fields, f.Type)
		case !f.IsExported() || name == "-":
		case name == "":
			fields[f.Name] = f.Type
		default:
			fields[name] = f.Type
		}
	}
}
