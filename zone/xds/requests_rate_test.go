package xds_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/resources/meshpb"
)

// TestRequestsOfOneProxyAreRated: a proxy that asks without end waits, on all its streams together, which is shown, and
// another proxy does not.
func TestRequestsOfOneProxyAreRated(t *testing.T) {
	t.Parallel()
	z := newZoneServer(t)
	z.dataplane("backend", httpInbound)
	z.dataplane("evil", httpInbound)
	began := time.Now()
	var evil []*deltaClient
	for range 2 {
		c := z.delta()
		c.subscribe(nodeOf("evil", ""), ecds, "unknown")
		for i := range 800 { // 1,600 are 3 s of the rate more than what a proxy may ask at once: slow machines take a while, too
			name := []string{fmt.Sprint("unknown-", i%2)}
			c.send(&discovery.DeltaDiscoveryRequest{TypeUrl: ecds, ResourceNamesSubscribe: name, ResourceNamesUnsubscribe: name})
		}
		c.subscribe(nil, cds, "*")
		evil = append(evil, c)
	}
	other := z.delta()
	other.subscribe(nodeOf("backend", ""), cds, "*")
	other.next(cds)
	for _, c := range evil {
		c.next(cds)
	}
	if took := time.Since(began); took < 500*time.Millisecond {
		t.Fatalf("1,600 requests were served in %v", took)
	}
	z.insight("evil", func(i *meshpb.DataplaneInsight) bool {
		return strings.Contains(problem(i, "limits"), "200 requests per second")
	})
}
