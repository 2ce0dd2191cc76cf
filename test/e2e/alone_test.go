package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// TestZoneStandsAlone checks that while the global is away, the zone accepts writes, configures its Envoys, restarts
// from its disk, and keeps what it got from the global. Afterwards both have everything.
func TestZoneStandsAlone(t *testing.T) {
	t.Parallel()
	e := &enforcement{mesh: newMesh(t, "zone-1")}
	e.zone1 = e.zones["zone-1"]
	e.backend = e.workload(e.zone1, cluster.InboundConfig{Name: "http-port", Protocol: cluster.ProtocolHTTP})
	e.frontend, _ = e.client(e.zone1, "frontend")
	malicious, _ := e.client(e.zone1, "malicious")

	e.apply(e.global, operator(entry("deny", "Exact", spiffeID("zone-1", "malicious"))))
	e.becomes(malicious, "http-port", false, operatorKRI)
	e.global.Kill()

	e.apply(e.zone1, owner("", entry("allow", "Prefix", "spiffe://default.zone-1.mesh.local/")))
	e.becomes(e.frontend, "http-port", true, ownerKRI)
	e.becomes(malicious, "http-port", false, operatorKRI)

	e.zone1.Kill()
	e.becomes(e.frontend, "http-port", true, ownerKRI) // the Envoy keeps its last configuration
	e.must(e.zone1.Start(t.Context()))
	e.becomes(malicious, "http-port", false, operatorKRI)
	other, _ := e.client(e.zone1, "other") // the CA is the same, the API answers
	e.becomes(other, "http-port", true, ownerKRI)
	e.apply(e.zone1, owner("", entry("allow", "Exact", spiffeID("zone-1", "other"))))
	e.becomes(e.frontend, "http-port", false, undecided)

	// A proxy that starts while the global is away is also served.
	e.must(e.backend.Proxy.Stop(t.Context()))
	e.must(e.backend.Proxy.Start(t.Context()))
	e.must(e.backend.Proxy.WaitListeners(t.Context(), e.backend.Inbound("http-port").Port))
	e.becomes(other, "http-port", true, ownerKRI)

	e.must(e.global.Start(t.Context()))
	e.eventually("the owner's policy on the global", func(ctx context.Context) error {
		var it cluster.Item
		if err := e.global.API.Get(ctx, "/_kri/"+ownerKRI, &it); err != nil {
			return err
		}
		var local cluster.Item
		if err := e.zone1.API.Get(ctx, "/_kri/"+ownerKRI, &local); err != nil {
			return err
		}
		if string(it.Spec) != string(local.Spec) {
			return fmt.Errorf("the global has %s, the zone %s", it.Spec, local.Spec)
		}
		return nil
	})
}

// TestTermination checks that SIGTERM ends each server with status 0, even with open streams, proxies and requests.
func TestTermination(t *testing.T) {
	t.Parallel()
	m := newMesh(t, "zone-1")
	m.workload(m.zones["zone-1"], cluster.InboundConfig{Name: "http-port", Protocol: cluster.ProtocolHTTP})
	for _, s := range []*cluster.Server{m.global, m.zones["zone-1"]} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
		cancel()
	}
}
