package kds

import (
	"fmt"
	"strings"
	"testing"

	"github.com/causeway-mesh/causeway/kds/exchange"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// TestRefusalOfWhatHasNoName reproduces a panic that took a global down: a zone says that it has x, is told that x is
// gone, and refuses that.
func TestRefusalOfWhatHasNoName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"x", "", ".", "..", ".default", "a b.default", "a\nb.default",
		strings.Repeat("a", 600) + ".default"} {
		g := startGlobal(t, store.NewMemory())
		p := dialPeer(t, "zone-1", g.address, exchange.OwnFeatures())
		p.openDown()
		p.subscribe(resources.TypeMeshTrafficPermission, map[string]string{name: "1"})
		m, err := p.down.Recv()
		if err == nil {
			t.Errorf("%q was taken for a name: %v", name, m)
			continue
		}
		if !strings.Contains(err.Error(), "initial_resource_versions") {
			t.Errorf("%q: the answer does not say what is wrong: %v", name, err)
		}
	}
	g := startGlobal(t, store.NewMemory())
	p := dialPeer(t, "zone-1", g.address, exchange.OwnFeatures())
	p.openDown()
	p.subscribe(resources.TypeMeshTrafficPermission, map[string]string{"x.default": "1"})
	m := p.receive()
	p.nack(m, "x: no\nx.default: no")
	eventually(t, "the refusal", func() bool { return len(g.Refusals("zone-1")) == 1 && g.CountRefusals("zone-1") == 1 })
	if n := g.CountRefusals("nowhere"); n != 0 {
		t.Errorf("a zone that was never here: %d refusals", n)
	}
}

// TestNackAttribution checks that names are found in the NACK lines of any peer.
func TestNackAttribution(t *testing.T) {
	t.Parallel()
	names := []string{"a-b.default", "long-name-x.default", "long-name.default", "dotted.name.mesh", "x", "",
		".", "mesh-1."}
	for _, c := range []struct{ line, name, reason string }{
		{"a-b.default: is bad: very", "a-b.default", "is bad: very"},
		{"mesh-1.: no", "mesh-1.", "no"},
		{`resource "long-name-x" is invalid`, "long-name-x.default", `resource "long-name-x" is invalid`},
		{"resource long-name.", "long-name.default", "resource long-name."},
		{"ns/dotted.name: no", "dotted.name.mesh", "ns/dotted.name: no"},
		{"(mesh-1)", "mesh-1.", "(mesh-1)"},
		{"nothing that we know", "", "nothing that we know"}, {". .. -", "", ". .. -"},
	} {
		if name, reason := newNack(names).attribute(c.line); name != c.name || reason != c.reason {
			t.Errorf("%q: %q, %q", c.line, name, reason)
		}
	}
}

// TestNackThatNamesNothing checks that nothing counts as acknowledged of a message that a peer refuses without naming
// resources, or without naming all. What it accepts later is no longer refused.
func TestNackThatNamesNothing(t *testing.T) {
	t.Parallel()
	for _, says := range []string{"no", "", " \n ", "a.default: is bad\nand 1 more"} {
		t.Run(says, func(t *testing.T) {
			s := store.NewMemory()
			g := startGlobal(t, s)
			for _, name := range []string{"a", "b"} {
				key, spec := permission(name)
				put(t, s, written(t, globalHome, key, spec))
			}
			p := dialPeer(t, "zone-1", g.address, exchange.OwnFeatures())
			p.openDown()
			p.subscribe(resources.TypeMeshTrafficPermission, nil)
			p.nack(p.receive(), says)
			for _, name := range []string{"a", "b"} {
				key, _ := permission(name)
				eventually(t, name+" to be refused",
					func() bool { return len(g.Rollout(s.Snapshot().Get(key)).Zones.Refused) == 1 })
			}
			for _, name := range []string{"a", "b"} {
				key, _ := permission(name)
				put(t, s, written(t, globalHome, key,
					`{"rules":[{"default":{"deny":[{"spiffeId":{"type":"Exact","value":"spiffe://a/b"}}]}}]}`))
			}
			for came := 0; came < 2; { // in one message or two
				m := p.receive()
				came += len(m.GetResources())
				p.ack(m)
			}
			eventually(t, "nothing to be refused", func() bool { return len(g.Refusals("zone-1")) == 0 })
		})
	}
}

// TestNackCostsWhatItIs checks that a line costs one lookup, not a comparison with each name: 300 lines about 10,000
// names took 0.94 s.
func TestNackCostsWhatItIs(t *testing.T) {
	t.Parallel()
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("some-resource-%d.default", i)
	}
	message := strings.Repeat(strings.Repeat("what stands here names nothing ", 3)+"\n", 300)
	cost := func(names []string) int64 {
		n := newNack(names)
		return testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				for line := range strings.SplitSeq(message, "\n") {
					n.attribute(line)
				}
			}
		}).NsPerOp()
	}
	// A hundred times the names: the same, but for the memory caches.
	few, many := cost(names[:100]), cost(names)
	if many > 20*few {
		t.Errorf("300 lines cost %d ns with 100 names, and %d ns with 10,000", few, many)
	}
}
