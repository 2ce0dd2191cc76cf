package global_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// typeAttempts are attempts of a zone that has joined to read or write types that zones may not, secrets above all.
func typeAttempts() []attempt {
	mesh := func(g *gated) error { return g.asksFor("zone-1", "Mesh", "*") }
	service := func(g *gated) error { return g.sends("zone-1", "MeshService") }
	var rows []attempt
	for _, t := range []string{"Secret", "GlobalSecret", "Config", "AccessRole", "AccessRoleBinding", "Zone",
		"ZoneInsight", "Nobody"} {
		rows = append(rows, attempt{"asking for each " + t, func(g *gated) error { return g.asksFor("zone-1", t, "*") },
			mesh, codes.NotFound, nil})
	}
	for _, name := range []string{"zone-ca", "token-signing", "zone-member-zone-1"} {
		rows = append(rows, attempt{"asking for the secret " + name,
			func(g *gated) error { return g.asksFor("zone-1", "Secret", name, name+".default") }, mesh, codes.NotFound, nil})
	}
	for _, t := range []string{"Secret", "AccessRole", "AccessRoleBinding", "Zone", "ZoneInsight", "Mesh",
		"MeshMultiZoneService"} {
		rows = append(rows, attempt{"sending a " + t, func(g *gated) error { return g.sends("zone-1", t) }, service,
			codes.PermissionDenied,
			[]string{verbSend, ofZone1, fmt.Sprintf(`"type":%q`, t)}})
	}
	return rows
}

// asksFor returns nil if the global has resources of the type for the zone, and NotFound if it does not serve the type:
// it answers a later subscription.
func (g *gated) asksFor(zone, t string, names ...string) error {
	const marker = "MeshTimeout"
	conn := g.dial(g.join(zone).pair)
	stream, err := conn.NewStream(as(g.t.Context(), zone), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		"/kuma.mesh.v1alpha1.KDSSyncService/GlobalToZoneSync")
	g.must(err)
	g.must(stream.SendMsg(&discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: zone}, TypeUrl: t,
		ResourceNamesSubscribe: names}))
	g.must(stream.SendMsg(&discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: zone}, TypeUrl: marker,
		ResourceNamesSubscribe: []string{"*"}}))
	answer := new(discovery.DeltaDiscoveryResponse)
	if err := stream.RecvMsg(answer); err != nil {
		return err
	}
	switch {
	case answer.GetTypeUrl() == marker:
		return status.Error(codes.NotFound, "nothing is said of it")
	case answer.GetTypeUrl() != t:
		return fmt.Errorf("the answer is about %q", answer.GetTypeUrl())
	case len(answer.GetResources()) == 0:
		return errors.New("an empty list, which a peer takes for the word that there are none")
	}
	return nil
}

// sends returns nil if the global accepts a resource of the type, and PermissionDenied if it refuses it by name. The
// name is that of a secret of the global, or another sensitive one, hashed as the global requires.
func (g *gated) sends(zone, t string) error {
	conn := g.dial(g.join(zone).pair)
	before := g.held()
	stream, err := conn.NewStream(as(g.t.Context(), zone), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		"/kuma.mesh.v1alpha1.KDSSyncService/ZoneToGlobalSync")
	g.must(err)
	meta, spec := &meshpb.KumaResource_Meta{Name: "zone-ca"}, `{"sealed":"AAAA"}`
	if t == "MeshService" {
		meta = &meshpb.KumaResource_Meta{Name: hashing.Name("default", "s", zone), Mesh: "default",
			Labels: map[string]string{"kuma.io/display-name": "s"}}
		spec = `{"selector":{"dataplaneTags":{"app":"a"}},"ports":[{"port":80}]}`
	}
	value, err := proto.Marshal(&meshpb.KumaResource{Meta: meta, Spec: &anypb.Any{Value: []byte(spec)}})
	g.must(err)
	item := &discovery.Resource{Name: meta.Name + "." + meta.Mesh, Version: "1",
		Resource: &anypb.Any{TypeUrl: "type.googleapis.com/kuma.mesh.v1alpha1.KumaResource", Value: value}}
	g.must(stream.SendMsg(&discovery.DeltaDiscoveryResponse{TypeUrl: t, Nonce: "1",
		Resources: []*discovery.Resource{item}, ControlPlane: &corev3.ControlPlane{Identifier: zone}}))
	for {
		request := new(discovery.DeltaDiscoveryRequest)
		if err := stream.RecvMsg(request); err != nil {
			return err
		}
		if request.GetResponseNonce() != "1" {
			continue
		}
		if refused := request.GetErrorDetail(); refused != nil {
			if now := g.held(); now != before {
				g.t.Errorf("what is refused has changed something: %s, before %s", now, before)
			}
			return status.Error(codes.PermissionDenied, refused.GetMessage())
		}
		return nil
	}
}

// held returns a digest of the global's resources of types that no zone may write.
func (g *gated) held() string {
	sum := sha256.New()
	for _, path := range []string{"/accessroles", "/accessrolebindings", "/meshes", "/meshmultizoneservices", "/zones"} {
		code, body := g.call("GET", path, "")
		_, _ = fmt.Fprintln(sum, path, code, body)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
