package e2e

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// badLinks is a global with a zone on a good link, and one zone for each kind of bad link.
type badLinks struct {
	*mesh
	good   *cluster.Server
	links  map[string]*cluster.Link
	writes int
}

// badWeathers are links that sooner or later break their sessions.
var badWeathers = map[string]cluster.Weather{
	"byte": {BytesPerSecond: 1},   // reads and is read at a byte a second
	"slow": {BytesPerSecond: 500}, // 4 kbit/s
	"hole": {Largest: 1200},       // large packets are lost
	"deaf": {FrozenDown: true},    // what the global sends is lost
	"mute": {FrozenUp: true},      // what the zone sends is lost
}

// TestFaultsLinks checks that zones on bad links (a byte or 4 kbit per second, no large packets, or one direction lost)
// do not affect the zone beside them and cost the global little while large policies are written. Sessions over dead
// links end, and the global reports it. After repair, all zones have the same state.
func TestFaultsLinks(t *testing.T) {
	b := &badLinks{mesh: newMesh(t, "good"), links: map[string]*cluster.Link{}}
	b.good = b.zones["good"]
	for name := range badWeathers {
		b.linkedZone(name)
	}
	const writes = 20
	before := b.propagation(writes)
	memory := b.heap()
	for name, link := range b.links {
		link.Set(badWeathers[name])
	}
	begun := time.Now()
	var during []time.Duration
	// Messages wait 10 s for room, and sessions 30 s for a sign of life.
	lasts := 5 * time.Second
	if *faultsLong {
		lasts = 75 * time.Second
	}
	for time.Since(begun) < lasts {
		b.large()
		during = append(during, b.propagation(5)...)
	}
	if *faultsLong {
		for name := range b.links {
			b.cut(name)
		}
	}
	grown := b.heap() - memory
	b.t.Logf("%d policies written; to the good zone: before p50 %s worst %s, beside bad links p50 %s worst %s; the global's heap grew by %.1f MiB",
		b.writes, middle(before), slices.Max(before), middle(during), slices.Max(during), grown)
	if middle(during) > 5*middle(before)+200*time.Millisecond {
		t.Errorf("the good zone was served in %s beside bad links, and in %s before", middle(during), middle(before))
	}
	// The changelog keeps 16 MiB of replaced resources, some 48 MiB with their decoded form.
	if grown > 96 {
		t.Errorf("bad links cost the global %.1f MiB", grown)
	}
	b.mend()
	mended := time.Now()
	for _, zone := range b.zones {
		b.must(cluster.Until(t.Context(), 2*patience, zone.Name()+" to have what the global has",
			func(ctx context.Context) error {
				return sameTimeouts(ctx, b.global, zone)
			}))
	}
	b.t.Logf("all zones agree %s after the links were mended", time.Since(mended).Round(time.Millisecond))
	b.noProblems(b.global.API.URL())
	for _, zone := range b.zones {
		b.noProblems(zone.API.URL())
	}
}

// mend repairs all links. Slow links end their connections, whose buffers are too small for more.
func (b *badLinks) mend() {
	for name, link := range b.links {
		if badWeathers[name].BytesPerSecond > 0 {
			link.Set(cluster.Weather{Cut: true})
		}
		link.Set(cluster.Weather{})
	}
}

// linkedZone starts a zone behind a link.
func (b *badLinks) linkedZone(name string) {
	b.t.Helper()
	link, err := cluster.NewLink(b.t.Context(), b.global.Address("kds"))
	b.must(err)
	b.t.Cleanup(func() { _ = link.Close() })
	b.links[name] = link
	zone, err := b.StartZone(b.t.Context(), cluster.ZoneConfig{Name: name, Global: b.global, Link: link})
	b.must(err)
	b.zones[name] = zone
	b.must(zone.WaitMesh(b.t.Context(), "default"))
}

// propagation writes n small policies, one at a time, and measures the time until each reaches the good zone.
func (b *badLinks) propagation(n int) (took []time.Duration) {
	b.t.Helper()
	for range n {
		b.writes++
		value := fmt.Sprint(b.writes)
		begun := time.Now()
		b.must(b.global.API.Put(b.t.Context(), "/meshes/default/meshtimeouts/mark", timeoutOf("mark", value)))
		b.eventually("the mark in the good zone", func(ctx context.Context) error {
			all, err := timeouts(ctx, b.good)
			if err == nil && timeoutValue(all["mark"]) != value {
				err = errNotYet
			}
			return err
		})
		took = append(took, time.Since(begun))
	}
	return took
}

// large writes a policy that is larger than a connection's buffers, with content that compresses badly.
func (b *badLinks) large() {
	b.t.Helper()
	b.writes++
	b.must(b.put(fmt.Sprintf("large-%d", b.writes%20), 1000))
}

// put writes a policy of size matches, 130 bytes each that compress badly.
func (b *badLinks) put(name string, size int) error {
	var matches []any
	for range size {
		id := make([]byte, 60)
		_, _ = rand.Read(id)
		matches = append(matches, map[string]any{"spiffeId": map[string]any{"type": "Exact",
			"value": "spiffe://nobody/" + hex.EncodeToString(id)}})
	}
	return b.global.API.Put(b.t.Context(), "/meshes/default/meshtrafficpermissions/"+name, map[string]any{
		"type": "MeshTrafficPermission", "mesh": "default", "name": name, "spec": map[string]any{
			"targetRef": map[string]any{"kind": "Dataplane", "labels": map[string]any{"app": "nobody"}},
			"rules":     []any{map[string]any{"default": map[string]any{"allow": matches}}},
		},
	})
}

// TestFaultsFourKilobits checks that a zone on a link of 4 kbit per second receives small changes and keeps its
// session. It also reconnects over such a link: certificates take a quarter of a minute, and no side gives up while
// they move.
func TestFaultsFourKilobits(t *testing.T) {
	t.Parallel()
	b := &badLinks{mesh: newMesh(t), links: map[string]*cluster.Link{}}
	b.linkedZone("slow")
	b.good = b.zones["slow"]
	slow := badWeathers["slow"]
	b.links["slow"].Set(slow)
	writes := 1
	if *faultsLong {
		writes = 20
	}
	took := b.propagation(writes)
	t.Logf("a small policy arrives within %s, %s at the worst", middle(took), slices.Max(took))
	if n := strings.Count(b.good.Log(), "connected to the global"); n != 1 {
		t.Errorf("the zone had %d sessions", n)
	}
	if !*faultsLong {
		return
	}
	b.links["slow"].Set(cluster.Weather{Cut: true})
	b.links["slow"].Set(slow)
	begun := time.Now()
	b.propagation(1)
	t.Logf("cut off, and back over 4 kbit a second with what was written meanwhile %s later",
		time.Since(begun).Round(time.Millisecond))
}

// cut waits until doctor on the global reports that a zone is offline, or behind if some bytes still pass.
func (b *badLinks) cut(zone string) {
	b.t.Helper()
	says := "offline since"
	if zone == "slow" {
		says = "behind by"
	}
	b.names(b.global.API.URL(), "zone", zone, says)
}

// heap returns the global's heap after a collection, in MiB.
func (b *badLinks) heap() float64 {
	b.t.Helper()
	return heapOf(b.mesh, b.global)
}

// heapOf returns a server's heap after a collection, in MiB.
func heapOf(m *mesh, s *cluster.Server) float64 {
	m.t.Helper()
	_, err := s.Diagnostics(m.t.Context(), "/debug/pprof/heap?gc=1")
	m.must(err)
	n, err := s.Metric(m.t.Context(), "go_memstats_heap_alloc_bytes")
	m.must(err)
	return n / (1 << 20)
}

// middle returns the median.
func middle(all []time.Duration) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}
