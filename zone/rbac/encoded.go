package rbac

import (
	"google.golang.org/protobuf/proto"
)

// Filter is a filter of permissions, and is immutable. Matchers that other filters have too are in it as encoded fields:
// to read them, decode what the filter encodes to.
type Filter struct {
	proto.Message
	refused error
}

// Validate returns why Envoy would refuse the filter, as the Validate methods of Envoy's messages do.
func (f Filter) Validate() error { return f.refused }

// encoded is a matcher that lists share. Its message has all of the matcher as unknown fields: encoding a list copies
// them, and does not walk and validate the same predicates for each list again.
type encoded struct {
	message *fieldMatcher
	refused error // why Envoy would refuse the matcher
}

// encode encodes a matcher, which must not change afterwards.
func encode(m *fieldMatcher) *encoded {
	refused := m.Validate()
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return &encoded{m, err}
	}
	out := new(fieldMatcher)
	out.ProtoReflect().SetUnknown(content)
	return &encoded{out, refused}
}
