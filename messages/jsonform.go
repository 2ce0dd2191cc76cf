package messages

import (
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// JSONForm is a message of our own RPCs. Servers of the previous version know it as a google.protobuf.BytesValue that
// holds JSON, so field 1, named json, has the message as JSON for them.
type JSONForm interface {
	proto.Message
	GetJson() []byte
}

// FromJSON fills in a message from a server of the previous version, which has only the field json, and reports whether
// it is one. Errors are those of the JSON. It removes the field json.
func FromJSON(m JSONForm) (bool, error) {
	text := m.GetJson()
	if text == nil {
		return false, nil
	}
	setJSON(m, nil)
	if len(text) == 0 || proto.Size(m) > 0 {
		return false, nil
	}
	err := protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, m)
	setJSON(m, nil)
	return true, err
}

// FormSize returns the size of the larger form of a message, in bytes. A sender that does not know its peer's version
// sends both forms, so a limit on the whole would be half of that on either.
func FormSize(m JSONForm) int {
	inJSON := len(m.GetJson())
	return max(inJSON, proto.Size(m)-inJSON)
}

// AddJSON sets the field json, for a server of the previous version.
func AddJSON(m JSONForm) error {
	text, err := protojson.Marshal(m)
	if err != nil {
		return err
	}
	setJSON(m, text)
	return nil
}

func setJSON(m JSONForm, text []byte) {
	r := m.ProtoReflect()
	field := r.Descriptor().Fields().ByName("json")
	if text == nil {
		r.Clear(field)
		return
	}
	r.Set(field, protoreflect.ValueOfBytes(text))
}
