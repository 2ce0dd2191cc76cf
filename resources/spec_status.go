package resources

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"
)

const (
	// eagerStatus is the size above which the JSON of a status is encoded at once, in bytes as Protobuf. Below it, the
	// JSON is within the limit of every store: a field grows less than 32 times, and most by statusGrowth.
	eagerStatus = 32 << 10
	// statusGrowth is how much larger the JSON of a status is than its Protobuf, about.
	statusGrowth = 4
)

// statusSpec is a spec whose JSON is encoded when somebody reads it.
type statusSpec struct {
	message proto.Message
	typ     Type
	size    int

	once sync.Once
	raw  []byte
}

// NewStatusSpec is NewSpecOf for live status, which is written far more often than it is read: the JSON is encoded when
// it is first read. The caller must not change m afterwards. All times in m are within the years that JSON has, 1 to
// 9999, as those of a clock are. It fails with ErrUnknownType, or if a text is not UTF-8.
func NewStatusSpec(t Type, m proto.Message) (*Spec, error) {
	if _, ok := LookupStored(t); !ok {
		return nil, fmt.Errorf("%w: %q", ErrUnknownType, t)
	}
	b, err := proto.Marshal(m) // JSON has no more room than Protobuf for text that is not UTF-8
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

// Message returns what NewStatusSpec was given, without decoding anything; nil for every other spec. The caller must not
// change it.
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
