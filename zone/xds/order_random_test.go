package xds

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/resources/store"
)

// publish replaces the state as Proxies do. The proxy may act between any two steps.
func (p *orderedProxy) publish(next *state) {
	pause := func() {
		for range p.dice.IntN(3) {
			p.acts()
		}
	}
	old := p.s.proxy.state.Load()
	p.s.proxy.state.Store(next)
	for _, k := range next.changed(old) {
		pause()
		p.s.wake(k)
	}
	pause()
}

// orderedState draws a state of services with an HTTP or a TCP listener each, one of them with a certificate. The version
// of a cluster or listener names what it refers to.
func orderedState(dice *rand.Rand, patches bool) *state {
	s := &state{}
	add := func(k kind, name, refers string) {
		version := fmt.Sprintf("%d+%s", dice.IntN(2), refers)
		s.sets[k] = append(s.sets[k], &resource{name: name, version: version, delta: &discovery.Resource{Name: name, Version: version}})
	}
	for _, c := range []string{"a", "b", "c", "d"} {
		if dice.IntN(3) == 0 {
			continue
		}
		add(kindCluster, c, "eds="+assignmentOf(c)+" sds="+identitiesOf(c))
		add(kindEndpoint, assignmentOf(c), "")
		add(kindSecret, identitiesOf(c), "")
		switch {
		case c < "c":
			add(kindListener, "l-"+c, "ecds=l-"+c+forwards)
			add(kindExtension, "l-"+c+forwards, "")
		case dice.IntN(2) == 0:
			add(kindListener, "l-"+c, "rds=r-"+c)
			add(kindRoute, "r-"+c, "")
		default:
			add(kindListener, "l-"+c, "rds=r-"+c+" sds="+"gateway_cert:l-"+c+":0")
			add(kindSecret, "gateway_cert:l-"+c+":0", "")
			add(kindRoute, "r-"+c, "")
		}
	}
	for k := range s.sets {
		s.sets[k] = newSet(s.sets[k]...)
	}
	if patches && dice.IntN(2) == 0 {
		s.patchOne(dice)
	}
	return s
}

// patchOne makes a MeshProxyPatch remove a cluster or listener, or make it ask for nothing.
func (s *state) patchOne(dice *rand.Rand) {
	k := []kind{kindCluster, kindListener}[dice.IntN(2)]
	if len(s.sets[k]) == 0 {
		return
	}
	sets := s.sets
	sets[k] = slices.Clone(sets[k])
	at := dice.IntN(len(sets[k]))
	name := sets[k][at].name
	s.patched.by = map[kind]map[string][]string{}
	if dice.IntN(2) == 0 {
		sets[k] = slices.Delete(sets[k], at, at+1)
	} else {
		sets[k][at] = &resource{name: name, version: "patched+", delta: &discovery.Resource{Name: name, Version: "patched+"}}
		s.patched.by[k] = map[string][]string{name: {"patch"}}
	}
	s.patched.sets = &sets
}

// settle lets the proxy act until it has nothing to do, and checks that it has all that it asks for.
func (p *orderedProxy) settle(round int) {
	p.t.Helper()
	for n := 0; p.acts(); n++ {
		if n > 10_000 {
			p.t.Fatalf("round %d: no end", round)
		}
	}
	now := p.s.proxy.state.Load()
	for _, k := range orderedKinds {
		if p.subs[k] == nil {
			continue
		}
		if p.s.subscription.withheld[k] {
			p.t.Fatalf("round %d: %s are withheld for good; the proxy has %v of %v", round, nouns[k], p.has, now.sets)
		}
		for _, r := range now.served(k) {
			_, named := p.subs[k].SubscribedResources()[r.name]
			if got := p.has[k][r.name]; (named || p.subs[k].IsWildcard()) && got != r.version && !p.refuses[r.name] {
				p.t.Fatalf("round %d: of %s the proxy has %s in version %q, want %q", round, nouns[k], r.name, got, r.version)
			}
		}
		for name := range p.has[k] {
			if !k.keptByName() && now.served(k).get(name) == nil {
				p.t.Fatalf("round %d: of %s the proxy keeps %s", round, nouns[k], name)
			}
		}
	}
}

// withheldSeeds is how many histories TestNothingIsWithheldForGood tries without refusals and patches; of each other kind
// it tries a fifth.
var withheldSeeds = flag.Uint64("withheld-seeds", 500, "histories of TestNothingIsWithheldForGood; 2500 is the long form")

// TestNothingIsWithheldForGood: whatever changes while a proxy asks and answers, however late, whatever it refuses and
// whatever patches take away, it ends with all that it asks for.
func TestNothingIsWithheldForGood(t *testing.T) {
	t.Parallel()
	part := max(*withheldSeeds/5, 1)
	for _, c := range []struct {
		name             string
		seeds            uint64
		refuses, patches bool
	}{{"plain", *withheldSeeds, false, false}, {"refusing", part, true, false}, {"patched", part, false, true},
		{"both", part, true, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := testProxies(store.NewMemory())
			for seed := range c.seeds {
				dice := rand.New(rand.NewPCG(seed, 1))
				p := newOrderedProxy(t, x, dice)
				if c.refuses {
					p.refuses[[]string{"a", "c", "l-b", "l-d"}[dice.IntN(4)]] = true
				}
				for round := range 12 {
					p.publish(orderedState(dice, c.patches))
					if dice.IntN(2) == 0 {
						p.settle(int(seed)*100 + round)
					}
				}
				p.settle(int(seed)*100 + 99)
				p.s.end()
			}
		})
	}
}
