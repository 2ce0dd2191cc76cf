package abuse

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/causeway-mesh/causeway/zone"
)

// oneProxy is what a zone may keep for one proxy, in bytes.
const oneProxy = 64 << 20

// asked are requests of one stream.
type asked []*discovery.DeltaDiscoveryRequest

// hoards are streams with which a proxy tries to make the zone keep hundreds of MiB, by types, names and versions
// alone.
var hoards = map[string]struct {
	streams  int
	requests func() asked
}{
	"versions of what it says it has": {40, func() (all asked) {
		for _, kind := range []string{"envoy.extensions.transport_sockets.tls.v3.Secret",
			"envoy.config.endpoint.v3.ClusterLoadAssignment", "envoy.config.route.v3.RouteConfiguration",
			"envoy.config.core.v3.TypedExtensionConfig"} {
			versions := map[string]string{}
			for i := range 2000 {
				versions[fmt.Sprint("nothing-", i)] = strings.Repeat("v", 1000)
			}
			all = append(all, &discovery.DeltaDiscoveryRequest{TypeUrl: "type.googleapis.com/" + kind,
				ResourceNamesSubscribe: []string{"x"}, InitialResourceVersions: versions})
		}
		return all
	}},
	"names of what it says it has": {40, func() (all asked) {
		for _, kind := range []string{"envoy.extensions.transport_sockets.tls.v3.Secret",
			"envoy.config.endpoint.v3.ClusterLoadAssignment", "envoy.config.route.v3.RouteConfiguration",
			"envoy.config.core.v3.TypedExtensionConfig"} {
			versions := map[string]string{}
			for _, name := range longNames("has", 2000) {
				versions[name] = "v"
			}
			all = append(all, &discovery.DeltaDiscoveryRequest{TypeUrl: "type.googleapis.com/" + kind,
				ResourceNamesSubscribe: []string{"x"}, InitialResourceVersions: versions})
		}
		return all
	}},
	"names that come and go beside all": {1, func() (all asked) {
		for i := range 60 {
			names := longNames(fmt.Sprint("gone-", i), 2000)
			all = append(all, &discovery.DeltaDiscoveryRequest{
				TypeUrl:                "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
				ResourceNamesSubscribe: append([]string{"*"}, names...), ResourceNamesUnsubscribe: names,
			})
		}
		return all
	}},
	"names of a type that is not served": {1, func() (all asked) {
		for i := range 60 {
			all = append(all, &discovery.DeltaDiscoveryRequest{TypeUrl: "type.googleapis.com/envoy.config.core.v3.Nothing", ResourceNamesSubscribe: longNames(fmt.Sprint("unserved-", i), 2000)})
		}
		return all
	}},
	"long types that begin alike": {1, func() (all asked) {
		for i := range 60 {
			all = append(all, &discovery.DeltaDiscoveryRequest{TypeUrl: strings.Repeat("t", 2<<20) + fmt.Sprint(i)})
		}
		return all
	}},
}

func longNames(prefix string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("%s-%d-%s", prefix, i, strings.Repeat("n", 980)))
	}
	return out
}

// TestWhatAProxyHasTheZoneKeep checks that no sequence of requests makes the zone keep more than 64 MiB for a proxy,
// and that another proxy is served meanwhile. The end of a stream frees what it held.
func TestWhatAProxyHasTheZoneKeep(t *testing.T) {
	s := &aServer{name: "zone", dataDir: t.TempDir()}
	c := zone.Config{
		Zone: "zone-1", DataDir: s.dataDir, ReadyFile: filepath.Join(s.dataDir, "ready.json"),
		Log:        slog.New(slog.DiscardHandler),
		APIAddress: "127.0.0.1:0", XDSAddress: "127.0.0.1:0", DiagnosticsAddress: "127.0.0.1:0", Access: settingsOf(),
	}
	s.run(t, c.ReadyFile, func(ctx context.Context) error { return zone.Run(ctx, c) })
	s.url = "http://" + s.addresses["api"]
	s.admin = s.client(t, "")
	if _, err := s.admin.ApplyDocuments(t.Context(), []byte(proxiesOfTheTable), "application/yaml"); err != nil {
		t.Fatal(err)
	}
	for name, row := range hoards {
		t.Run(name, func(t *testing.T) {
			conn, err := grpc.NewClient(s.addresses["xds"], grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			before := heapInUse()
			for range row.streams {
				hold(t, conn, row.requests())
			}
			if grown := heapInUse() - before; grown > oneProxy {
				t.Errorf("one proxy takes %d MiB", grown>>20)
			}
			if err := ask(t, conn, "shop"); err != nil {
				t.Errorf("another proxy: %v", err)
			}
		})
	}
}

// hold sends a proxy's requests, and waits until the zone has processed them, or has ended the stream. The stream stays
// open until the test ends.
func hold(t *testing.T, conn *grpc.ClientConn, requests asked) {
	t.Helper()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	requests[0].Node = &corev3.Node{Id: "default.till"}
	clusters := "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	for _, request := range append(requests, &discovery.DeltaDiscoveryRequest{TypeUrl: clusters}) {
		if stream.Send(request) != nil {
			break // it has ended
		}
	}
	for { // answers come in the order of the requests
		answer, err := stream.Recv()
		if err != nil || answer.GetTypeUrl() == clusters {
			return
		}
	}
}
