package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/test/peer"
)

// TestRotationWaitsForProxiesThatComeBack checks that an authority that was next to sign when the zone stopped does not
// sign before the proxies connected at that time are back and trust it. Until then they keep their identities.
func TestRotationWaitsForProxiesThatComeBack(t *testing.T) {
	t.Parallel()
	r := &restart{mesh: newCluster(t)}
	r.zone = r.startZone("zone-1")
	r.apply(r.zone, "{type: Dataplane, mesh: default, name: proxy-0, networking: {address: 127.0.0.1, inbound: [{name: main, port: 10000, servicePort: 20000, protocol: http}]}}")
	p, err := peer.ConnectProxy(t.Context(), peer.ProxyConfig{XDS: r.zone.Address("xds"), Mesh: "default",
		Dataplane: "proxy-0", Secrets: true})
	r.must(err)
	t.Cleanup(func() { _ = p.Close() })
	r.proxies = []*peer.Proxy{p}
	r.all("to have all", func(_ int, p *peer.Proxy) bool { return p.Complete() })
	r.must(r.zone.Stop(t.Context()))
	next := r.rotate(false)
	r.must(r.zone.Start(t.Context()))
	if out, err := r.CTL(t.Context(), r.zone, nil, "keys", "list", "-o", "json"); err != nil ||
		!strings.Contains(string(out), "that have not reconnected since its start") {
		t.Errorf("the next authority waits for nobody: %s, %v", out, err)
	}
	r.must(p.Reconnect(t.Context()))
	r.eventually("an identity by the next authority", func(ctx context.Context) error {
		if issued, err := r.zone.Metric(ctx, "causeway_identity_issued_total"); err != nil || issued != 1 {
			return fmt.Errorf("%v issued: %w", issued, errNotYet)
		}
		return nil
	})
	r.metric(`causeway_identity_kept_total{outcome="used"}`, 1) // it returned with its own identity
	if out, err := r.CTL(t.Context(), r.zone, nil, "keys", "list", "-o", "json"); err != nil ||
		!strings.Contains(string(out), next) {
		t.Errorf("%s is not there: %s, %v", next, out, err)
	}
}
