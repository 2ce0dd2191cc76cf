package main

import (
	"context"
	"fmt"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/causeway-mesh/causeway/hashing"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/test/peer"
)

// The mesh that the page is measured with.
const (
	pageZones, fewPageZones                       = 1000, 100
	servicesOfZone, proxiesOfZone, policiesOfZone = 2, 5, 10
	pageNamespaces                                = 20
	typePrefix                                    = "type.googleapis.com/kuma.mesh.v1alpha1."
	pageServiceType, pageProxy                    = "MeshService", "Dataplane"
)

// pageMesh is the mesh of so many zones.
type pageMesh int

func (m pageMesh) services() int { return int(m) * servicesOfZone }
func (m pageMesh) proxies() int  { return int(m) * proxiesOfZone }
func (m pageMesh) policies() int { return int(m) * policiesOfZone }

func (m pageMesh) String() string {
	return fmt.Sprintf("%d zones, %d policies, %d services, %d proxies", int(m), m.policies(), m.services(), m.proxies())
}

// pageService is one service of the mesh: its zone, its namespace, and the identity of its proxies.
type pageService struct {
	name, namespace, zone, identity string
}

func serviceOf(i int) pageService {
	s := pageService{name: fmt.Sprintf("s-%d", i), namespace: fmt.Sprintf("ns-%d", i%pageNamespaces),
		zone: fmt.Sprintf("bench-%d", i/servicesOfZone)}
	s.identity = fmt.Sprintf("spiffe://default.%s.mesh.local/ns/%s/sa/%s", s.zone, s.namespace, s.name)
	return s
}

func (s *pageService) labels() map[string]string {
	return map[string]string{"kuma.io/mesh": "default", "kuma.io/origin": "zone", "kuma.io/zone": s.zone,
		"k8s.kuma.io/namespace": s.namespace}
}

// permission allows some callers of one service, one of them some requests only.
func (m pageMesh) permission(i int) (path string, doc map[string]any) {
	of := i % m.services()
	caller := func(n int) map[string]any {
		s := serviceOf((of*31 + i*7 + n*13) % m.services())
		return map[string]any{"spiffeId": map[string]any{"type": "Exact", "value": s.identity}}
	}
	denied := caller(2)
	denied["method"] = []string{"DELETE"}
	name := fmt.Sprintf("bench-%d", i)
	return "/meshes/default/meshtrafficpermissions/" + name, map[string]any{
		"type": "MeshTrafficPermission", "mesh": "default", "name": name,
		"spec": map[string]any{
			"targetRef": map[string]any{"kind": "Dataplane", "labels": map[string]any{"app": serviceOf(of).name}},
			"rules": []any{map[string]any{"default": map[string]any{"deny": []any{denied}, "allow": []any{caller(0), caller(1), denied,
				map[string]any{"spiffeId": map[string]any{"type": "Exact", "value": "spiffe://bench/nobody"}}}}}},
		},
	}
}

// offersOf returns what a zone of the page's mesh sends to the global, by type: its services, its proxies, and that these
// are connected.
func offersOf(zone int) (map[string][]peer.Resource, error) {
	out := map[string][]peer.Resource{}
	add := func(t, name string, labels map[string]string, spec, specType string) {
		labels["kuma.io/display-name"] = name
		out[t] = append(out[t], peer.Resource{Type: t, Name: hashing.Name("default", name, labels["kuma.io/zone"], labels["k8s.kuma.io/namespace"]), Mesh: "default", Labels: labels, Spec: spec, SpecType: specType})
	}
	for i := range servicesOfZone {
		s := serviceOf(zone*servicesOfZone + i)
		add(pageServiceType, s.name, s.labels(), fmt.Sprintf(`{"selector":{"dataplaneLabels":{"matchLabels":{"app":%q}}},`+
			`"ports":[{"name":"http","port":80,"targetPort":8080,"appProtocol":"http"}],"identities":[{"type":"SpiffeID","value":%q}]}`, s.name, s.identity), "")
	}
	connected := &meshpb.DataplaneInsight{Subscriptions: []*meshpb.DiscoverySubscription{{Id: "1", ControlPlaneInstanceId: "1",
		ConnectTime: timestamppb.New(time.Now()), Status: &meshpb.DiscoverySubscriptionStatus{}}}}
	insight, err := proto.Marshal(connected)
	if err != nil {
		return nil, err
	}
	for i := range proxiesOfZone {
		s := serviceOf(zone*servicesOfZone + i%servicesOfZone)
		name := fmt.Sprintf("%s-%d", s.name, i)
		labels := func() map[string]string {
			all := s.labels()
			all["app"], all["k8s.kuma.io/service-account"] = s.name, s.name
			return all
		}
		spec, err := proto.Marshal(&meshpb.Dataplane{Networking: &meshpb.Dataplane_Networking{Address: "192.0.2.1",
			Inbound: []*meshpb.Dataplane_Networking_Inbound{{Port: 8080, Name: "http", Protocol: "http",
				Tags: map[string]string{"kuma.io/service": s.name, "kuma.io/protocol": "http"}}}}})
		if err != nil {
			return nil, err
		}
		add(pageProxy, name, labels(), string(spec), typePrefix+pageProxy)
		add(pageProxy+"Insight", name, labels(), string(insight), typePrefix+pageProxy+"Insight")
	}
	return out, nil
}

// serveOffers answers the global's first request of each type with what the zone has, until the stream ends.
func serveOffers(ctx context.Context, conn *grpc.ClientConn, zone int) error {
	all, err := offersOf(zone)
	if err != nil {
		return err
	}
	up, err := conn.NewStream(ctx, &streamDesc, "/kuma.mesh.v1alpha1.KDSSyncService/ZoneToGlobalSync")
	if err != nil {
		return err
	}
	asked := map[string]bool{}
	for {
		var frame []byte
		if err := up.RecvMsg(&frame); err != nil {
			return err
		}
		request := &discovery.DeltaDiscoveryRequest{}
		if err := proto.Unmarshal(frame, request); err != nil {
			return err
		}
		if d := request.GetErrorDetail(); d != nil {
			return fmt.Errorf("the global refuses what zone %d has: %s", zone, d.GetMessage())
		}
		if asked[request.TypeUrl] {
			continue
		}
		asked[request.TypeUrl] = true
		if err := sendOffers(up, request.TypeUrl, all[request.TypeUrl]); err != nil {
			return err
		}
	}
}

func sendOffers(up grpc.ClientStream, t string, all []peer.Resource) error {
	response := &discovery.DeltaDiscoveryResponse{TypeUrl: t, Nonce: "1"}
	for _, r := range all {
		one, err := r.Wire("1")
		if err != nil {
			return err
		}
		response.Resources = append(response.Resources, one)
	}
	raw, err := proto.Marshal(response)
	if err != nil {
		return err
	}
	return up.SendMsg(&raw)
}
