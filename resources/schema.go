package resources

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// shape is the form that a schema requires of a value.
type shape uint8

const (
	anyShape shape = iota
	objectShape
	fieldsShape
	mapShape
	listShape
	stringShape
	boolShape
	integerShape
	numberShape
	enumShape
	stringsShape
	intOrStringShape
)

// schema describes the valid values at one place of a document. Schemas are compiled once from the Go types and
// protobuf messages that the registry names, so they always match the decoders. They never change.
type schema struct {
	shape shape
	// fields holds the fields of a fieldsShape by their name in the document. Alternative spellings map to the same
	// field.
	fields map[string]schemaField
	// elem is the schema of the elements of a map or list.
	elem     *schema
	min, max float64
	// enum holds the names of an enumShape.
	enum []string
	// owner is the Go type or the protobuf message that a fieldsShape decodes into.
	owner string
	// noNull makes null an error for a field here. Elsewhere null means absent, but here an absent field has a meaning
	// of its own.
	noNull bool
}

type schemaField struct {
	// name is the field's first spelling.
	name string
	// origin is the Go type and field, or the protobuf message and field, that the value decodes into:
	// MeshService.Ports.
	origin string
	*schema
}

// names returns the fields' names in their first spelling, sorted.
func (s *schema) names() []string {
	var out []string
	for _, f := range s.fields {
		out = append(out, f.name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// schemas holds a function per type that returns the schema of its spec. The first call compiles it, so a command that
// reads one type, or none, does not pay for all.
var schemas = compilers()

func compilers() map[Type]func() *schema {
	out := make(map[Type]func() *schema, len(table))
	for i := range table {
		d := &table[i]
		out[d.Type] = sync.OnceValue(func() *schema { return compileSchema(d) })
	}
	return out
}

func compileSchema(d *Descriptor) *schema {
	v := d.newSpec()
	if m, ok := v.(proto.Message); ok {
		return messageSchema(m.ProtoReflect().Descriptor())
	}
	return goSchema(reflect.TypeOf(v).Elem(), d.Type, "")
}

// schemaOf returns the schema of a type's spec, or nil if the type has none.
func schemaOf(t Type) *schema {
	if compile, ok := schemas[t]; ok {
		return compile()
	}
	return nil
}

// Tag of fields that hold raw JSON. It names the shape of the value. The shape of a conf depends on the type of the
// policy.
const shapeTag = "shape"

var rawMessage = reflect.TypeFor[json.RawMessage]()

// goSchema compiles the Go type t, which is part of the spec of type owner. tag is the shape tag of the field that
// holds it.
func goSchema(t reflect.Type, owner Type, tag string) *schema {
	switch {
	case t == rawMessage:
		return rawSchema(owner, tag)
	case t == reflect.TypeFor[HeaderExpressions]():
		return &schema{shape: anyShape} // an object or a list of objects: its decoder reports errors
	case t == reflect.TypeFor[Methods]():
		return &schema{shape: stringsShape}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return goSchema(t.Elem(), owner, tag)
	case reflect.Struct:
		s := &schema{shape: fieldsShape, fields: map[string]schemaField{}, owner: t.Name(),
			noNull: t == reflect.TypeFor[AccessRule]()}
		addStructFields(s, t, owner)
		return s
	case reflect.Slice:
		return &schema{shape: listShape, elem: goSchema(t.Elem(), owner, tag)}
	case reflect.Map:
		return &schema{shape: mapShape, elem: goSchema(t.Elem(), owner, "")}
	case reflect.String:
		return &schema{shape: stringShape}
	case reflect.Bool:
		return &schema{shape: boolShape}
	case reflect.Uint32:
		return &schema{shape: integerShape, max: math.MaxUint32}
	case reflect.Int, reflect.Int32:
		return &schema{shape: integerShape, min: math.MinInt32, max: math.MaxInt32}
	default:
		panic("no schema for " + t.String())
	}
}

func addStructFields(s *schema, t reflect.Type, owner Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			addStructFields(s, f.Type, owner)
			continue
		}
		field := schemaField{name: name, origin: t.Name() + "." + f.Name,
			schema: goSchema(f.Type, owner, f.Tag.Get(shapeTag))}
		s.fields[name] = field
		if other := f.Tag.Get("alias"); other != "" {
			s.fields[other] = field
		}
	}
}

func rawSchema(owner Type, tag string) *schema {
	if t, ok := confTypes[confKey{owner, tag}]; ok {
		return goSchema(t, owner, "")
	}
	switch tag {
	case "match":
		return goSchema(reflect.TypeFor[PermissionMatch](), owner, "")
	case "intOrString":
		return &schema{shape: intOrStringShape}
	case "to", "from", "rule", "object":
		return &schema{shape: objectShape}
	default:
		return &schema{shape: anyShape}
	}
}

// messageSchema compiles a protobuf message. A field is found by its JSON name and by its proto name.
func messageSchema(d protoreflect.MessageDescriptor) *schema {
	switch d.FullName() {
	case "google.protobuf.Struct":
		return &schema{shape: objectShape}
	case "google.protobuf.Duration", "google.protobuf.Timestamp":
		return &schema{shape: stringShape}
	case "google.protobuf.BoolValue", "google.protobuf.StringValue", "google.protobuf.BytesValue",
		"google.protobuf.UInt32Value", "google.protobuf.DoubleValue":
		return scalarSchema(d.Fields().ByName("value"))
	}
	message := strings.ReplaceAll(strings.TrimPrefix(string(d.FullName()), string(d.ParentFile().Package())+"."), ".", "_")
	s := &schema{shape: fieldsShape, fields: map[string]schemaField{}, owner: message}
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		field := schemaField{name: f.JSONName(), origin: message + "." + string(f.Name()), schema: protoFieldSchema(f)}
		s.fields[f.JSONName()] = field
		s.fields[string(f.Name())] = field
	}
	return s
}

func protoFieldSchema(f protoreflect.FieldDescriptor) *schema {
	switch {
	case f.IsMap():
		return &schema{shape: mapShape, elem: scalarSchema(f.MapValue())}
	case f.IsList():
		return &schema{shape: listShape, elem: scalarSchema(f)}
	default:
		return scalarSchema(f)
	}
}

func scalarSchema(f protoreflect.FieldDescriptor) *schema {
	switch f.Kind() {
	case protoreflect.MessageKind:
		return messageSchema(f.Message())
	case protoreflect.EnumKind:
		s := &schema{shape: enumShape}
		for i := range f.Enum().Values().Len() {
			s.enum = append(s.enum, string(f.Enum().Values().Get(i).Name()))
		}
		return s
	case protoreflect.BoolKind:
		return &schema{shape: boolShape}
	case protoreflect.Uint32Kind:
		return &schema{shape: integerShape, max: math.MaxUint32}
	case protoreflect.Uint64Kind:
		return &schema{shape: intOrStringShape}
	case protoreflect.DoubleKind:
		return &schema{shape: numberShape}
	default:
		return &schema{shape: stringShape}
	}
}
