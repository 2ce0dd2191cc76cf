package peer

import (
	"fmt"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// Resource is a resource as sent on the wire.
type Resource struct {
	Type, Name, Mesh string
	Labels           map[string]string
	// Spec is JSON: the zone handles only types whose spec is. A Global may send a protobuf message as a spec: SpecType
	// is then its type URL, and Spec its bytes.
	Spec, SpecType string
}

func (r Resource) wireName() string { return r.Name + "." + r.Mesh }

func decode(t string, wire *discovery.Resource) (Resource, error) {
	var envelope meshpb.KumaResource
	if err := wire.GetResource().UnmarshalTo(&envelope); err != nil {
		return Resource{}, fmt.Errorf("%s %s: %w", t, wire.GetName(), err)
	}
	m := envelope.GetMeta()
	r := Resource{Type: t, Name: m.GetName(), Mesh: m.GetMesh(), Labels: m.GetLabels(),
		Spec: string(envelope.GetSpec().GetValue())}
	if r.wireName() != wire.GetName() {
		return r, fmt.Errorf("%s: the resource inside is called %q", wire.GetName(), r.wireName())
	}
	return r, nil
}

// Wire returns the resource in wire form.
func (r Resource) Wire(version string) (*discovery.Resource, error) {
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(&meshpb.KumaResource{
		Meta: &meshpb.KumaResource_Meta{Name: r.Name, Mesh: r.Mesh, Labels: r.Labels},
		Spec: &anypb.Any{TypeUrl: r.SpecType, Value: []byte(r.Spec)},
	})
	return &discovery.Resource{Name: r.wireName(), Version: version,
		Resource: &anypb.Any{TypeUrl: envelopeType, Value: value}}, err
}
