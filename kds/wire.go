package kds

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/kds/exchange"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/causeway-mesh/causeway/lineage"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/resources/systempb"
)

const (
	typeURLPrefix   = "type.googleapis.com/"
	resourceTypeURL = typeURLPrefix + "kuma.mesh.v1alpha1.KumaResource"
	// maxWireName bounds the name of a peer's resource; hashing.MaxNameLength is the longest one that we make.
	maxWireName = 253
)

// Encode encodes r, which Outbound has mapped, for the wire. The version is the SHA-256 of the bytes. Source: Kuma's
// wire format, "Any rules" and "Exchange sequence".
func Encode(r *resources.Resource) (*discovery.Resource, error) {
	spec, err := encodeSpec(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Key, err)
	}
	envelope := &meshpb.KumaResource{
		Meta: &meshpb.KumaResource_Meta{Name: r.Name, Mesh: r.Mesh, Labels: r.Labels},
		Spec: spec,
	}
	if r.Status != nil {
		envelope.Status = &anypb.Any{Value: r.Status}
	}
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(envelope)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Key, err)
	}
	return &discovery.Resource{
		Name:     exchange.WireName(r.Name, r.Mesh),
		Version:  versionOf(value),
		Resource: &anypb.Any{TypeUrl: resourceTypeURL, Value: value},
	}, nil
}

// specMessage returns the spec as its message, which may be shared.
func specMessage(r *resources.Resource) (proto.Message, error) {
	if shared := r.Spec.Message(); shared != nil {
		return shared, nil
	}
	message, err := newMessage(r.Type)
	if err != nil {
		return nil, err
	}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(r.Spec.JSON(), message); err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	return message, nil
}

func encodeSpec(r *resources.Resource) (*anypb.Any, error) {
	if r.Descriptor().Codec == resources.JSON {
		return &anypb.Any{Value: r.Spec.JSON()}, nil
	}
	message, err := specMessage(r)
	if err != nil {
		return nil, err
	}
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	return &anypb.Any{TypeUrl: typeURLPrefix + string(message.ProtoReflect().Descriptor().FullName()), Value: value}, nil
}

// Decode decodes a peer's resource of type t. Its key has no namespace: Inbound derives it. The error concerns this
// resource only.
func Decode(t resources.Type, wire *discovery.Resource) (*resources.Resource, error) {
	d, ok := resources.Lookup(t)
	if !ok {
		return nil, fmt.Errorf("%w: %q", resources.ErrUnknownType, t)
	}
	if got := wire.GetResource().GetTypeUrl(); got != resourceTypeURL {
		return nil, fmt.Errorf("%w: the resource is a %q, want %q", errUndecodable, got, resourceTypeURL)
	}
	var envelope meshpb.KumaResource
	if err := decodeMessage(wire.GetResource().GetValue(), &envelope); err != nil {
		return nil, fmt.Errorf("%w: %w", errUndecodable, err)
	}
	meta := envelope.GetMeta()
	if err := checkMeta(d, meta, wire.GetName()); err != nil {
		return nil, err
	}
	spec, err := decodeSpec(d, envelope.GetSpec())
	if err != nil {
		return nil, fmt.Errorf("%w: spec: %w", errUndecodable, err)
	}
	if err := checkLabels(meta.GetLabels()); err != nil {
		return nil, err
	}
	r := &resources.Resource{Key: resources.Key{Type: t, Mesh: meta.GetMesh(), Name: meta.GetName()},
		Labels: meta.GetLabels(), Spec: spec}
	if r.Labels == nil {
		r.Labels = map[string]string{}
	}
	if status := envelope.GetStatus(); status != nil && d.HasStatus {
		if r.Status, err = canonicalStatus(status.GetValue()); err != nil {
			return nil, fmt.Errorf("%w: status: %w", errUndecodable, err)
		}
	}
	return r, nil
}

func checkMeta(d *resources.Descriptor, meta *meshpb.KumaResource_Meta, wireName string) error {
	name, mesh := meta.GetName(), meta.GetMesh()
	switch {
	case name == "" || len(name) > maxWireName || strings.ContainsFunc(name, notInNames):
		return fmt.Errorf("%w: %q is not a name", errUndecodable, name)
	case len(mesh) > maxWireName || strings.ContainsFunc(mesh, notInNames):
		return fmt.Errorf("%w: %q is not a mesh's name", errUndecodable, mesh)
	case exchange.WireName(name, mesh) != wireName:
		return fmt.Errorf("%w: it is called %q inside", errUndecodable, exchange.WireName(name, mesh))
	case d.Scope == resources.ScopeMesh && mesh == "":
		return fmt.Errorf("%w: a %s belongs to a mesh, and this one names none", errUndecodable, d.Type)
	case d.Scope == resources.ScopeGlobal && mesh != "":
		return fmt.Errorf("%w: a %s belongs to no mesh, and this one names %q", errUndecodable, d.Type, mesh)
	}
	return nil
}

// notInNames reports whether a character is invalid in every name: it would break paths, logs or refusals, which are
// lines.
func notInNames(c rune) bool { return c <= ' ' || c == '/' || c == 0x7f }

func decodeSpec(d *resources.Descriptor, spec *anypb.Any) (*resources.Spec, error) {
	if d.Codec == resources.JSON {
		raw := spec.GetValue()
		if len(raw) == 0 {
			raw = []byte("{}")
		}
		if err := checkText(raw); err != nil {
			return nil, err
		}
		return resources.NewSpec(d.Type, raw)
	}
	message, err := newMessage(d.Type)
	if err != nil {
		return nil, err
	}
	if spec == nil {
		return resources.NewSpecOf(d.Type, message)
	}
	if want := message.ProtoReflect().Descriptor().FullName(); spec.MessageName() != want {
		return nil, fmt.Errorf("it is a %q, want %q", spec.MessageName(), want)
	}
	if err := decodeMessage(spec.GetValue(), message); err != nil {
		return nil, err
	}
	return resources.NewSpecOf(d.Type, message)
}

// newMessage returns an empty spec of a type whose codec is Protobuf.
func newMessage(t resources.Type) (proto.Message, error) {
	switch t {
	case resources.TypeMesh:
		return new(meshpb.Mesh), nil
	case resources.TypeDataplane:
		return new(meshpb.Dataplane), nil
	case resources.TypeDataplaneInsight:
		return new(meshpb.DataplaneInsight), nil
	case resources.TypeZoneIngress:
		return new(meshpb.ZoneIngress), nil
	case resources.TypeMeshGateway:
		return new(meshpb.MeshGateway), nil
	case resources.TypeZone:
		return new(systempb.Zone), nil
	case resources.TypeZoneInsight:
		return new(systempb.ZoneInsight), nil
	}
	return nil, fmt.Errorf("%w: %q has no message", resources.ErrUnknownType, t)
}

func canonicalStatus(raw []byte) (json.RawMessage, error) {
	if len(raw) == 0 {
		return json.RawMessage("{}"), nil
	}
	if err := checkText(raw); err != nil {
		return nil, err
	}
	var v map[string]json.RawMessage
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	if v == nil {
		return json.RawMessage("{}"), nil
	}
	canonical, err := json.Marshal(v)
	return canonical, err
}

// progress is Causeway's content of system_version_info, which the plain protocol leaves empty: the sender's revision
// and, if needed, how the message relates to others.
type progress struct {
	revision uint64
	// mute is set if the peer does not send its revisions; the other fields are then what its message implies.
	mute bool
	// list is set if the message is part of a complete list; what none of its parts names is gone.
	list bool
	// resume is set if the message is part of the answer to initial_resource_versions.
	resume bool
	// more is set if more parts of the same list, answer or change follow.
	more bool
	// word is that of the last start of the sender's store at revision; empty if the sender has its store to itself: then
	// it does not change in a session.
	word string
	// age is the time from the oldest write of the changes, at its origin, to the sending of the message; zero if
	// unknown.
	age time.Duration
	// traces are the sender's steps in them. Only a peer with FeatureTraces gets them.
	traces []trace.SpanContext
}

// wordStart begins the part of a progress with the word of a start.
const wordStart = "start="

func (p progress) String() string {
	var room [64]byte // for what most messages say
	s := strconv.AppendUint(room[:0], p.revision, 10)
	if p.list {
		s = append(s, " list"...)
	}
	if p.resume {
		s = append(s, " resume"...)
	}
	if p.more {
		s = append(s, " more"...)
	}
	if p.word != "" {
		s = append(append(s, " "+wordStart...), p.word...)
	}
	if p.age > 0 {
		s = strconv.AppendInt(append(s, " "+wordAge...), p.age.Microseconds(), 10)
	}
	for _, one := range p.traces {
		s = append(append(s, " "+wordTrace...), traceParent(one)...)
	}
	return string(s)
}

// parseProgress reads String's form; ok is false for what a plain peer sends. It skips unknown words.
func parseProgress(s string) (p progress, ok bool) {
	words := strings.Fields(s)
	if len(words) == 0 {
		return progress{}, false
	}
	if _, err := fmt.Sscanf(words[0], "%d", &p.revision); err != nil {
		return progress{}, false
	}
	for _, w := range words[1:] {
		switch w {
		case "list":
			p.list = true
		case "resume":
			p.resume = true
		case "more":
			p.more = true
		default:
			if word, ok := strings.CutPrefix(w, wordStart); ok && len(word) <= lineage.MaxEpoch && isWord(word) {
				p.word = word
			}
			p.parseCause(w)
		}
	}
	return p, true
}
