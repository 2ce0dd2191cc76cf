package e2e

import (
	"context"
	"flag"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/test/cluster"
)

var (
	crashRounds = flag.Int("crashes", 20, "how often TestCrashes kills a server")
	crashSeed   = flag.Uint64("seed", 20240611, "what the random choices of the tests follow from")
)

// crash is a mesh under two writers: one on the global, one in zone-1.
type crash struct {
	*enforcement
	ofGlobal, ofZone *ledger
	rng              *rand.Rand
}

// TestCrashes repeatedly kills the global or a zone without warning during writes to both. Acknowledged writes survive
// the restart, both sides agree in the end, and the Envoy's listeners never change. After that, restarts without a
// change write nothing.
func TestCrashes(t *testing.T) {
	t.Parallel()
	c := newCrash(t)
	before, err := c.backend.Proxy.ListenerStats(t.Context())
	c.must(err)
	if len(before) < 4 {
		t.Fatalf("too few statistics of listeners: %v", before)
	}
	for round := range *crashRounds {
		victim := c.global
		if c.rng.IntN(2) == 0 {
			victim = c.zone1
		}
		after := time.Duration(20+c.rng.IntN(130)) * time.Millisecond
		c.crash(victim, after)
		if t.Failed() {
			t.Fatalf("in round %d, after %s was killed", round, victim.Name())
		}
	}
	t.Logf("%d rounds: %d acknowledged writes on the global, %d in the zone", *crashRounds, c.ofGlobal.written,
		c.ofZone.written)
	if c.ofGlobal.written < *crashRounds || c.ofZone.written < *crashRounds {
		t.Error("too few writes to call this a test")
	}
	stats, err := c.backend.Proxy.ListenerStats(t.Context())
	c.must(err)
	if !maps.Equal(stats, before) {
		t.Errorf("the Envoy's listeners moved: %v, then %v", before, stats)
	}
	c.bystander()
	c.quietRestarts()
}

func newCrash(t *testing.T) *crash {
	t.Helper()
	return crashOf(newMesh(t, "zone-1", "zone-2"))
}

// crashOf adds the workload, its client and the writers to a mesh of zone-1 and zone-2.
func crashOf(m *mesh) *crash {
	m.t.Helper()
	c := &crash{enforcement: &enforcement{mesh: m}}
	c.zone1, c.zone2 = c.zones["zone-1"], c.zones["zone-2"]
	c.rng = rand.New(rand.NewPCG(*crashSeed, 0))
	c.backend = c.workload(c.zone1, cluster.InboundConfig{Name: "http-port", Protocol: cluster.ProtocolHTTP})
	c.ofGlobal = newLedger(c.global, "g", "meshtrafficpermissions", permissionOf, permissionValue)
	c.ofZone = newLedger(c.zone1, "z", "meshtimeouts", timeoutOf, timeoutValue)
	c.frontend, _ = c.client(c.zone1, "frontend")
	c.apply(c.zone1, owner("", entry("allow", "Exact", spiffeID("zone-1", "frontend"))))
	c.becomes(c.frontend, "http-port", true, ownerKRI)
	return c
}

func newLedger(s *cluster.Server, prefix, plural string, doc func(string, string) map[string]any,
	value func(cluster.Item) string) *ledger {
	return &ledger{
		server: s, path: "/meshes/default/" + plural, prefix: prefix, doc: doc, value: value,
		promised: map[string]string{}, possible: map[string][]string{},
	}
}

func permissionOf(name, value string) map[string]any {
	match := map[string]any{"spiffeId": map[string]any{"type": "Exact", "value": "spiffe://nobody/" + value}}
	return map[string]any{"type": "MeshTrafficPermission", "mesh": "default", "name": name, "spec": map[string]any{
		"default": map[string]any{"allow": []any{match}},
	}}
}

func permissionValue(it cluster.Item) string { return valueAfter("spiffe://nobody/", `"`, it) }

func timeoutOf(name, value string) map[string]any {
	conf := map[string]any{"http": map[string]any{"requestTimeout": value + "ms"}}
	return map[string]any{"type": "MeshTimeout", "mesh": "default", "name": name, "spec": map[string]any{
		"to": []any{map[string]any{"targetRef": map[string]any{"kind": "Mesh"}, "default": conf}},
	}}
}

func timeoutValue(it cluster.Item) string { return valueAfter(`requestTimeout":"`, `ms"`, it) }

// valueAfter finds the value in a spec, regardless of white space.
func valueAfter(before, after string, it cluster.Item) string {
	spec := strings.Join(strings.Fields(string(it.Spec)), "")
	_, value, _ := strings.Cut(spec, before)
	value, _, found := strings.Cut(value, after)
	if !found {
		return "no value in " + spec
	}
	return value
}

// crash writes for a while, kills the victim, restarts it, and checks.
func (c *crash) crash(victim *cluster.Server, after time.Duration) {
	c.t.Helper()
	writing, stop := context.WithTimeout(c.t.Context(), after+20*time.Millisecond)
	defer stop()
	var g errgroup.Group
	for _, l := range []*ledger{c.ofGlobal, c.ofZone} {
		rng := rand.New(rand.NewPCG(c.rng.Uint64(), 0))
		g.Go(func() error { return l.write(writing, rng) })
	}
	select {
	case <-time.After(after):
	case <-c.t.Context().Done():
	}
	victim.Kill()
	c.must(g.Wait())
	c.must(victim.Start(c.t.Context()))
	c.must(c.ofGlobal.check(c.t.Context()))
	c.must(c.ofZone.check(c.t.Context()))
	c.agree()
}

// agree waits until each side has what was written on the other. A zone waits longer before each attempt if the global
// keeps disconnecting, so this may take a while.
func (c *crash) agree() {
	c.t.Helper()
	c.must(cluster.Until(c.t.Context(), reconnectPatience, "both sides to agree", func(ctx context.Context) error {
		if err := c.ofGlobal.agrees(ctx, c.zone1); err != nil {
			return err
		}
		return c.ofZone.agrees(ctx, c.global)
	}))
}

// bystander restarts zone-2, which only the global's crashes affect, and expects it to have everything.
func (c *crash) bystander() {
	c.t.Helper()
	c.must(c.zone2.Stop(c.t.Context()))
	c.must(c.zone2.Start(c.t.Context()))
	c.eventually("zone-2 to agree", func(ctx context.Context) error { return c.ofGlobal.agrees(ctx, c.zone2) })
}
