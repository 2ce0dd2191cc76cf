package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/peer"
)

// badProxies is a zone with proxies that accept their configuration, and others that do not.
type badProxies struct {
	*truth
	zone   *cluster.Server
	served []*peer.Proxy
	writes int
}

// join writes n Dataplanes and connects their proxies.
func (b *badProxies) join(kind string, n int, cfg peer.ProxyConfig) []*peer.Proxy {
	b.t.Helper()
	cfg.XDS, cfg.Mesh = b.zone.Address("xds"), "default"
	out := make([]*peer.Proxy, n)
	for i := range out {
		name := fmt.Sprintf("%s-%d", kind, i)
		b.must(b.zone.API.Put(b.t.Context(), "/meshes/default/dataplanes/"+name, map[string]any{
			"type": "Dataplane", "mesh": "default", "name": name,
			"networking": map[string]any{"address": "127.0.0.1", "inbound": []any{map[string]any{
				"name": "http-port", "port": 10000, "servicePort": 20000, "protocol": "http",
			}}},
		}))
		cfg.Dataplane = name
		p, err := peer.ConnectProxy(b.t.Context(), cfg)
		b.must(err)
		b.t.Cleanup(func() { _ = p.Close() })
		out[i] = p
	}
	return out
}

// propagation writes n policies for all on the global, and measures how long each takes to reach all served proxies.
func (b *badProxies) propagation(n int) (took []time.Duration) {
	b.t.Helper()
	for range n {
		b.writes++
		mark := fmt.Sprintf("mark-%d.", b.writes)
		policy := loadPolicy(0, mark)
		policy["name"] = "wide"
		begun := time.Now()
		b.must(b.global.API.Put(b.t.Context(), "/meshes/default/meshtrafficpermissions/wide", policy))
		for _, p := range b.served {
			b.eventually(mark, func(context.Context) error { return knows(p, mark) })
		}
		took = append(took, time.Since(begun))
	}
	return took
}

// TestFaultsProxies has proxies that refuse their whole configuration, and ones that never read from their sockets,
// beside proxies that are served. These get changes as fast, the zone's memory stays bounded, and zone and global list
// the bad ones with time and reason: never as enforcing anything.
func TestFaultsProxies(t *testing.T) {
	t.Parallel()
	m := &truth{newMesh(t, "zone-1")}
	b := &badProxies{truth: m, zone: m.zones["zone-1"]}
	size, writes := 10, 20
	if *faultsLong {
		size, writes = 200, 100
	}
	b.served = b.join("served", size, peer.ProxyConfig{})
	const status, policy = "rollout", "kri_mtp_default___wide_"
	before := b.propagation(writes)
	for _, s := range []*cluster.Server{b.zone, b.global} {
		b.says(s, 0, []string{fmt.Sprintf("enforced by %d of %d proxies", size, size)}, status, "status", policy)
	}
	memory := heapOf(b.mesh, b.zone)

	refusing := b.join("refuses", size, peer.ProxyConfig{Refuses: "no, thank you"})
	deaf := b.join("deaf", size, peer.ProxyConfig{Deaf: true})
	during := b.propagation(writes)
	begun := time.Now()
	for _, s := range []*cluster.Server{b.zone, b.global} {
		b.says(s, 1, []string{fmt.Sprintf("enforced by %d of %d proxies", size, 3*size), "it does not answer about clusters since 20"},
			status, "status", policy)
		b.says(s, 1, []string{`"refuses-0"`, `"deaf-0"`, "it refuses clusters (", "since 20", ": no, thank you"}, status, "status", policy, "-o", "json")
		b.says(s, 1, []string{" refuse their configuration, do not answer, or it cannot be built:"}, "doctor") // the deaf ones are gone after 80 s
	}
	b.t.Logf("all of those that do not answer are named after %s", time.Since(begun).Round(time.Second))
	for _, p := range refusing {
		b.must(p.Err())
		b.must(p.Close())
	}
	b.says(b.zone, 1, []string{fmt.Sprintf("enforced by %d of %d proxies", size, 3*size)},
		status, "status", policy)
	grown := heapOf(b.mesh, b.zone) - memory
	b.t.Logf("%d proxies, and as many of both kinds: to all that are served p50 %s worst %s before, p50 %s worst %s beside; the zone's heap grew by %.1f MiB",
		size, middle(before), slices.Max(before), middle(during), slices.Max(during), grown)
	if middle(during) > 5*middle(before)+500*time.Millisecond {
		t.Errorf("the others were served in %s, and in %s before", middle(during), middle(before))
	}
	if most := 16 + float64(size)/2; grown > most { // half a MiB for each pair, far more than a served one needs
		t.Errorf("they cost the zone %.1f MiB, at most %.0f", grown, most)
	}
	for _, p := range deaf {
		_ = p.Close()
	}
	b.says(b.zone, 1, []string{fmt.Sprintf("enforced by %d of %d proxies", size, 3*size),
		fmt.Sprintf("unknown for %d: ", 2*size), "(not connected since 20"}, status, "status", policy)
}
