package xds

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/causeway-mesh/causeway/resources"
)

// changeSeeds is how many histories TestChangesOfAllTypesLeadWhereABuildFromScratchDoes tries.
var changeSeeds = flag.Uint64("change-seeds", 16,
	"histories of TestChangesOfAllTypesLeadWhereABuildFromScratchDoes; 500 is the long form")

// check compares each proxy with one of a server that starts now.
func (c *changing) check(at string) {
	c.t.Helper()
	scratch := pinned(c.store)
	scratch.accesses = maps.Clone(c.x.accesses)             // a proxy's access depends on what it had
	maps.Copy(scratch.presence.absent, c.x.presence.absent) // and so does who is away
	fresh := map[string]*session{}
	for name := range c.sessions {
		fresh[name] = connectWhole(c.t, scratch, name)
		defer fresh[name].end()
	}
	scratch.catchUp()
	for _, name := range changedProxies {
		have, want := c.sessions[name].proxy, fresh[name].proxy
		if want.state.Load() == nil {
			continue // its config cannot be built: it keeps what it had
		}
		if a, b := problemsOf(have), problemsOf(want); !maps.Equal(a, b) {
			c.t.Fatalf("%s: %s has the problems\n%q, from scratch\n%q", at, name, a, b)
		}
		for k := range kinds {
			c.compare(fmt.Sprintf("%s: %s: %s", at, name, k), have.state.Load().served(k), want.state.Load().served(k))
		}
	}
}

func problemsOf(p *proxy) map[string]string {
	p.record.mu.Lock()
	defer p.record.mu.Unlock()
	return p.record.problemsLocked()
}

func (c *changing) compare(what string, have, want set) {
	c.t.Helper()
	byName := func(s set) map[string]*resource {
		out := map[string]*resource{}
		for _, r := range s {
			out[r.name] = r
		}
		return out
	}
	a, b := byName(have), byName(want)
	if len(a) != len(have) || !slices.IsSortedFunc(have, func(a, b *resource) int { return bytes.Compare([]byte(a.name), []byte(b.name)) }) {
		c.t.Fatalf("%s: names are not sorted, or are there twice", what)
	}
	for name, r := range b {
		got := a[name]
		switch {
		case got == nil:
			c.t.Fatalf("%s: has no %s", what, name)
		case got.version != r.version, got.delta.GetVersion() != r.version,
			!bytes.Equal(got.delta.GetResource().GetValue(), r.delta.GetResource().GetValue()):
			c.t.Fatalf("%s: %s differs from a build from scratch:\n%s\n%s", what, name, toProtoJSON(c.t, got), toProtoJSON(c.t, r))
		}
	}
	if len(a) != len(b) {
		c.t.Fatalf("%s: has %v, from scratch %v", what, slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b)))
	}
}

// TestChangesOfAllTypesLeadWhereABuildFromScratchDoes: whatever policies of whatever types come, change and go, each
// proxy has, byte for byte, what it would get from a server that starts now, and the same problems. In every other history
// most changes are of gateways, and of the policies that their listeners depend on.
func TestChangesOfAllTypesLeadWhereABuildFromScratchDoes(t *testing.T) {
	t.Parallel()
	drawn := 0
	for seed := range *changeSeeds {
		c := newChanging(t, seed)
		if c.gateways = seed%2 == 1; c.gateways {
			c.types = []resources.Type{resources.TypeMeshTimeout, resources.TypeMeshTrace, resources.TypeMeshAccessLog, resources.TypeMeshProxyPatch}
		}
		for round := range 12 {
			for range 1 + c.dice.IntN(4) {
				c.change()
				if c.chance(3) {
					c.x.catchUp()
				}
			}
			c.flush()
			c.x.catchUp()
			c.check(fmt.Sprintf("history %d, round %d", seed, round))
		}
		for _, s := range c.sessions {
			s.end()
		}
		drawn += c.drawn
	}
	if drawn < 5*int(*changeSeeds) {
		t.Errorf("%d policies were drawn that a server would store", drawn)
	}
}
