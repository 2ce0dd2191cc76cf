package abuse

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/zone"
)

// TestProxiesDoNotLeadToTheServer writes Dataplanes and services that would make a proxy on the zone's machine forward
// its callers' bytes to a loopback port of the zone, where local programs are trusted. The proxy does not receive them.
func TestProxiesDoNotLeadToTheServer(t *testing.T) {
	s := startZoneWith(t, func(c *zone.Config) { c.XDSRequireCredentials = false })
	conn, err := grpc.NewClient(s.addresses["xds"], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	subscribe := sync.OnceFunc(func() {
		const clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
		_ = stream.Send(&discovery.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "default.mole"}, TypeUrl: clusters})
		go func() {
			for {
				got, err := stream.Recv()
				if err != nil {
					return
				}
				_ = stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: clusters, ResponseNonce: got.GetNonce()})
			}
		}()
	})
	apply := func(service, external string) {
		t.Helper()
		_, err := s.admin.ApplyDocuments(t.Context(), []byte(fmt.Sprintf(`{type: MeshExternalService, mesh: default, name: out, spec: {match: {port: 80, protocol: tcp}, endpoints: [{address: %s}]}}
---
{type: Dataplane, mesh: default, name: mole, networking: {address: 127.0.0.1, inbound: [{name: in, port: 18190, protocol: tcp, %s}], outbound: [{port: 18191, backendRef: {kind: MeshExternalService, name: out, port: 80}}]}}
`, external, service)), "application/yaml")
		if err != nil {
			t.Fatal(err)
		}
	}
	problems := func() string {
		var out struct {
			Metadata struct{ Problems map[string]string }
		}
		_ = s.admin.JSON(t.Context(), api.Request{Path: "/meshes/default/dataplane-insights/mole"}, &out)
		return fmt.Sprint(out.Metadata.Problems)
	}
	for _, port := range []string{"api", "diagnostics", "xds"} {
		_, own, err := net.SplitHostPort(s.addresses[port])
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ what, service, external, says string }{
			{"a service outside", "servicePort: 18192", "127.0.0.1, port: " + own, "it is not dialled"},
			{"by its name", "servicePort: 18192", "localhost, port: " + own, "it is not dialled"},
			{"by a name that leads there when it is looked up", "servicePort: 18192",
				"rebound.attacker.example, port: " + own, "where a name may lead"},
			{"by its name with a dot", "servicePort: 18192", "localhost.localdomain, port: " + own, "it is not dialled"},
			{"an inbound", "servicePort: " + own, "192.0.2.1, port: 80",
				"is a port of the zone server, not of an application"},
			{"by another notation", "serviceAddress: '::ffff:127.0.0.1', servicePort: " + own, "192.0.2.1, port: 80",
				"is a port of the zone server, not of an application"},
		} {
			apply(c.service, c.external)
			subscribe()
			eventually(t, port+", "+c.what+", to be refused", func() bool { return strings.Contains(problems(), c.says) })
			apply("servicePort: 18192", "rebound.attacker.example, port: 80")
			eventually(t, port+", "+c.what+": the twin to be told",
				func() bool { return !strings.Contains(problems(), "zone server") })
		}
	}
	for _, address := range []string{"169.254.169.254", "'fe80::1'", "'::ffff:169.254.169.254'", "0.0.0.0", "224.0.0.1"} {
		_, err := s.admin.ApplyDocuments(t.Context(), []byte(`{type: Dataplane, mesh: default, name: mole, networking: {address: 127.0.0.1, inbound: [{port: 18190, servicePort: 80, serviceAddress: `+address+`}]}}`), "application/yaml")
		if err == nil || !strings.Contains(err.Error(), "serviceAddress") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
