package proxypatch

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// valid checks the resources that differ from before, so that Envoy receives nothing that its own field rules reject.
func (e *editor) valid(before *Config) error {
	for k := range resourceKinds {
		for _, name := range e.differing(before, k) {
			if r := e.all(k)[name]; r != nil && !r.checked {
				if err := Validate(r.message); err != nil {
					return &Problem{Path: []string{"appendModifications"}, Text: fmt.Sprintf("the result is not a %s that Envoy takes: %s: %v",
						r.message.ProtoReflect().Descriptor().Name(), name, err)}
				}
			}
		}
	}
	return nil
}

// Validate checks a message and all messages within it, including packed ones, by the rules of Envoy's types.
func Validate(m proto.Message) error {
	if v, ok := m.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return err
		}
	}
	return eachAny(m.ProtoReflect(), func(a *anypb.Any) error {
		inner, err := open(a)
		if err != nil {
			return err
		}
		return Validate(inner)
	})
}

// eachAny visits the packed messages within a message, but not those within them.
func eachAny(m protoreflect.Message, visit func(*anypb.Any) error) error {
	return eachMessage(m, func(below protoreflect.Message) (bool, error) {
		a, ok := below.Interface().(*anypb.Any)
		if !ok {
			return true, nil
		}
		return false, visit(a)
	})
}

// eachMessage visits the messages within a message, outer ones first. visit reports whether to look within.
func eachMessage(m protoreflect.Message, visit func(protoreflect.Message) (bool, error)) (err error) {
	one := func(v protoreflect.Message) {
		var within bool
		if within, err = visit(v); err == nil && within {
			err = eachMessage(v, visit)
		}
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap():
			if fd.MapValue().Kind() == protoreflect.MessageKind {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
					one(v.Message())
					return err == nil
				})
			}
		case fd.Kind() != protoreflect.MessageKind:
		case fd.IsList():
			for i := range v.List().Len() {
				if one(v.List().Get(i).Message()); err != nil {
					break
				}
			}
		default:
			one(v.Message())
		}
		return err == nil
	})
	return err
}
