package zone_test

import (
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/kubernetes/injection"
	"github.com/causeway-mesh/causeway/zone"
)

// TestBootstrapOfAPod: what is rendered before the pod exists is, with the pod's name and address put in, what is rendered
// with them.
func TestBootstrapOfAPod(t *testing.T) {
	t.Parallel()
	probes := []injection.Probe{{Path: "/n/a", Port: 8080, Timeout: 1, HTTPGet: &injection.HTTPGet{Path: "/ready?a=$(B)"}},
		{Path: "/n/b", Port: 8080, Timeout: 1, TCPSocket: &struct{}{}}, {Path: "/n/c", Port: 9000, Timeout: 1, GRPC: &injection.GRPCProbe{}}}
	for _, c := range []struct {
		every, address string
		six            bool
	}{{"0.0.0.0", "10.0.0.1", false}, {"[::]", "fd00::1", true}} {
		later, err := zone.PodBootstrap(&injection.Bootstrap{Mesh: "default", Namespace: "shop", Name: "NAME", XDSAddress: "127.0.0.1:5678",
			TokenFile: "/var/run/secrets/causeway.io/token", AdminAddress: "127.0.0.1:9901", ReadyAddress: c.every + ":15021",
			Drain: 30 * time.Second, ClusterDNS: true, Probes: probes, ProbeAddress: c.every + ":15020", Application: "ADDRESS", IPv6: c.six})
		must(t, err)
		now, err := zone.Bootstrap(zone.BootstrapConfig{Mesh: "default", Namespace: "shop", Dataplane: "backend-1", XDSAddress: "127.0.0.1:5678",
			RenewedTokenFile: "/var/run/secrets/causeway.io/token", AdminAddress: "127.0.0.1:9901", ReadyAddress: c.every + ":15021",
			DrainTime: 30 * time.Second, ClusterDNS: true, Probes: probes, ProbeAddress: c.every + ":15020", ApplicationAddress: c.address})
		must(t, err)
		got := strings.NewReplacer("NAME", "backend-1", "ADDRESS", c.address).Replace(string(later))
		if _, want, _ := strings.Cut(string(now), "\n"); got != want {
			t.Errorf("%s: %s\nwant %s", c.address, got, want)
		}
	}
	if _, err := zone.PodBootstrap(&injection.Bootstrap{Name: "NAME", XDSAddress: "127.0.0.1:5678", Drain: time.Second, TokenFile: "/a:b/token"}); err == nil {
		t.Error("a path that Envoy reads as two is taken")
	}
}
