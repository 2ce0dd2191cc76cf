package resources

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Spec is the body of a resource: an immutable JSON object in canonical form (keys sorted, no white space), and its
// typed form, decoded at most once. It is safe for concurrent use.
type Spec struct {
	// raw is nil for a status spec that nobody has read as JSON.
	raw    []byte
	status *statusSpec
	once   sync.Once
	typed  any
	err    error
	make   func() any
	// strict means that the document was checked against the type's schema, so it has no unknown fields.
	strict bool
	// sealed means that some values are in sealed form.
	sealed bool

	permissionsOnce sync.Once
	permissions     []PermissionRule
	// patch is the last reading of a MeshProxyPatch; nil for none.
	patch atomic.Pointer[proxyPatchRead]
}

// NewSpec returns the JSON object raw as the spec of type t. It keeps unknown fields: decoding refuses those of users,
// and ValidatePeer those of peers where they matter. It fails with ErrUnknownType, or if raw is not one JSON object.
func NewSpec(t Type, raw []byte) (*Spec, error) {
	d, ok := LookupStored(t)
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrUnknownType, t)
	}
	return newSpec(d, raw)
}

func newSpec(d *Descriptor, raw []byte) (*Spec, error) {
	canonical, err := canonicalObject(raw)
	if err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	return newSpecOf(d, canonical), nil
}

func newSpecOf(d *Descriptor, canonical []byte) *Spec {
	return &Spec{raw: canonical, make: d.newSpec, sealed: d.Sensitive != nil && bytes.Contains(canonical, []byte(sealedMark))}
}

// NewSpecOf is NewSpec for a typed value: one of this package's spec types, or a generated message.
func NewSpecOf(t Type, v any) (*Spec, error) {
	var raw []byte
	var err error
	if m, ok := v.(proto.Message); ok {
		raw, err = protojson.Marshal(m)
	} else {
		raw, err = json.Marshal(v)
	}
	if err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	return NewSpec(t, raw)
}

// Undecoded returns the same spec without its typed forms. Readers decode them again.
func (s *Spec) Undecoded() *Spec {
	if s.status != nil {
		return s
	}
	return &Spec{raw: s.raw, make: s.make, strict: s.strict, sealed: s.sealed}
}

// JSON returns the canonical bytes. The caller must not change them.
func (s *Spec) JSON() []byte {
	if s.status != nil {
		return s.status.json()
	}
	return s.raw
}

// Sealed reports whether some values are in sealed form; see SealedText.
func (s *Spec) Sealed() bool { return s.sealed }

// Equal reports whether both are the same JSON value.
func (s *Spec) Equal(o *Spec) bool {
	if s.status != nil && o.status != nil {
		return proto.Equal(s.status.message, o.status.message)
	}
	return bytes.Equal(s.JSON(), o.JSON())
}

// decode returns the typed form: a pointer to the registry's Go type. No one may change it.
func (s *Spec) decode() (any, error) {
	s.once.Do(func() {
		if s.status != nil {
			s.typed = s.status.message
			return
		}
		v := s.make()
		if m, ok := v.(proto.Message); ok {
			s.err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(s.raw, m)
		} else {
			s.err = json.Unmarshal(s.raw, v)
		}
		s.typed = v
	})
	return s.typed, s.err
}

// SpecAs returns the typed spec of r, for example *meshpb.Dataplane or *Policy. The result is shared and must not be
// changed. It fails if the stored JSON does not fit the type, or if T is not the type's spec.
func SpecAs[T any](r *Resource) (*T, error) {
	v, err := r.Spec.decode()
	if err != nil {
		return nil, fmt.Errorf("%s: spec: %w", r.Key, err)
	}
	typed, ok := v.(*T)
	if !ok {
		return nil, fmt.Errorf("%s: spec is a %T, not a %T", r.Key, v, typed)
	}
	return typed, nil
}

// canonicalObject re-encodes one JSON object with sorted keys and with numbers as they were written.
func canonicalObject(raw []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v map[string]any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if v == nil {
		v = map[string]any{}
	}
	if dec.More() {
		return nil, fmt.Errorf("more than one JSON value")
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
