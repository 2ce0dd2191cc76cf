package resources

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"
)

const (
	// eagerStatus is the size in bytes, as Protobuf, above which the JSON of a status is encoded at once. Below it, the
	// JSON is within the limit of every store: a field grows less than 32 times, and most by statusGrowth.
	eagerStatus = 32 << 10
	// statusGrowth is roughly how many times larger a status is as JSON than as Protobuf.
	statusGrowth = 4
)

// statusSpec is a spec whose JSON is encoded on first use.
type statusSpec struct {
	message proto.Message
	typ     Type
	size    int

	once sync.Once
	raw  []byte
}

// NewStatusSpec is NewSpecOf for live status, which is written far more often than read: its JSON is encoded when it is
// first read. The caller must not change m afterwards. All times in m are within the years that JSON supports, 1 to
// 9999, as those of a clock are. It fails with ErrUnknownType, or if a string is not UTF-8.
func NewStatusSpec(t Type, m proto.Message) (*Spec, error) {
	if _, ok := LookupStored(t); !ok {
		return nil, fmt.Errorf("%w: %q", ErrUnknownType, t)
	}
	b, err := proto.Marshal(m) // like JSON, Protobuf rejects text that is not UTF-8
	if err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	if len(b) > eagerStatus {
		return NewSpecOf(t, m)
	}
	return &Spec{status: &statusSpec{message: m, typ: t, size: len(b) * statusGrowth}}, nil
}

func (s *statusSpec) json() []byte {
	s.once.Do(func() {
		s.raw = []byte("{}")
		if spec, err := NewSpecOf(s.typ, s.message); err == nil { // NewStatusSpec rules errors out
			s.raw = spec.raw
		}
	})
	return s.raw
}

// Message returns the message passed to NewStatusSpec, without decoding anything, or nil for any other spec. The caller
// must not change it.
func (s *Spec) Message() proto.Message {
	if s.status == nil {
		return nil
	}
	return s.status.message
}

// Size returns the length of JSON, or an estimate while nobody has read a status.
func (s *Spec) Size() int {
	if s.status != nil {
		return s.status.size
	}
	return len(s.raw)
}
