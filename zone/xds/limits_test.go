package xds_test

import (
	"fmt"
	"strings"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// TestStreamsOfOneProxyAreBounded: a proxy has so many streams, which is shown, another proxy does not notice, and when
// they have gone there is room again.
func TestStreamsOfOneProxyAreBounded(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", httpInbound)
	z.dataplane("evil", httpInbound)
	var open []*deltaClient
	for range 64 {
		c := z.delta()
		c.subscribe(nodeOf("evil", ""), cds, "*")
		c.next(cds)
		open = append(open, c)
	}
	c := z.delta()
	c.subscribe(nodeOf("evil", ""), cds, "*")
	if err := c.fails(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("the 65th stream: %v", err)
	}
	z.insight("evil",
		func(i *meshpb.DataplaneInsight) bool { return strings.Contains(problem(i, "limits"), "64 streams") })
	c = z.delta()
	c.subscribe(nodeOf("backend", ""), cds, "*")
	c.next(cds)
	for _, one := range open {
		one.close()
	}
	z.insight("evil", func(i *meshpb.DataplaneInsight) bool {
		for _, s := range i.GetSubscriptions() {
			if s.GetDisconnectTime() == nil {
				return false
			}
		}
		return true
	})
	c = z.delta()
	c.subscribe(nodeOf("evil", ""), cds, "*")
	c.next(cds)
}

// TestNamesOfOneProxyAreBounded: 100,000 names, however they are spread over requests and streams, are too many for one
// proxy.
func TestNamesOfOneProxyAreBounded(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", httpInbound)
	z.dataplane("evil", httpInbound)
	policies := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("kri_mtp_default_zone-1__p-%d_", i))
		}
		return out
	}
	c := z.delta()
	c.subscribe(nodeOf("evil", ""), ecds, strings.Repeat("x", 1025))
	if err := c.fails(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a long name: %v", err)
	}
	c = z.delta()
	c.subscribe(nodeOf("evil", ""), ecds, policies(4000)...)
	more := policies(8000)[4000:]
	c.subscribe(nil, ecds, more...)
	if err := c.fails(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("8,000 names in two requests: %v", err)
	}
	ended := codes.OK
	for range 26 {
		c := z.delta()
		c.subscribe(nodeOf("evil", ""), ecds, policies(4000)...)
		_ = c.stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: cds, ResourceNamesSubscribe: []string{"*"}}) // it may have ended
		select {
		case err := <-c.err:
			ended = status.Code(err)
		case <-c.responses: // of the clusters: the names before were taken
		}
	}
	if ended != codes.ResourceExhausted {
		t.Errorf("104,000 names on 26 streams: %v", ended)
	}
	z.insight("evil", func(i *meshpb.DataplaneInsight) bool { return strings.Contains(problem(i, "limits"), "names") })
	c = z.delta()
	c.subscribe(nodeOf("backend", ""), cds, "*")
	c.next(cds)
}

// TestProxyComesBackWithAllItHas: a proxy that asks for nearly as much as it may does so again when it reconnects, with the
// version of each.
func TestProxyComesBackWithAllItHas(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", httpInbound)
	names, versions := []string{"*"}, map[string]string{}
	for i := range 4000 {
		name := fmt.Sprintf("kri_mtp_default_zone-1__p-%d_", i)
		names = append(names, name)
		versions[name] = "v"
	}
	c := z.delta()
	if err := c.stream.Send(&discovery.DeltaDiscoveryRequest{Node: nodeOf("backend", ""), TypeUrl: cds,
		ResourceNamesSubscribe: names, InitialResourceVersions: versions}); err != nil {
		t.Fatal(err)
	}
	c.next(cds)
}
