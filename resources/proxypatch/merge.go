package proxypatch

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// merge merges src into dst, which has the same type: fields that src sets replace those of dst, messages are merged,
// and lists are appended. Durations and wrapped values replace, so that 0 can be set.
func merge(dst, src proto.Message) {
	clearValues(dst.ProtoReflect(), src.ProtoReflect())
	proto.Merge(dst, src)
}

// clearValues clears the fields of dst that src sets to a value that is a message of its own.
func clearValues(dst, src protoreflect.Message) {
	src.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.Kind() != protoreflect.MessageKind || fd.IsList() || fd.IsMap() || !dst.Has(fd) {
			return true
		}
		if strings.HasPrefix(string(fd.Message().FullName()), "google.protobuf.") {
			dst.Clear(fd)
			return true
		}
		clearValues(dst.Mutable(fd).Message(), v.Message())
		return true
	})
}

// mergeAny merges the message in src into the one in dst. Both must have the same type.
func mergeAny(dst, src *anypb.Any) (*anypb.Any, error) {
	if dst.GetTypeUrl() != src.GetTypeUrl() {
		return nil, fmt.Errorf("its typed config is a %s, and the value's a %s", typeName(dst), typeName(src))
	}
	into, err := open(dst)
	if err != nil {
		return nil, err
	}
	from, err := open(src)
	if err != nil {
		return nil, err
	}
	merge(into, from)
	return seal(into)
}

// typeName returns the name of the message in an Any.
func typeName(a *anypb.Any) string {
	name := a.GetTypeUrl()
	return name[strings.LastIndexByte(name, '/')+1:]
}
