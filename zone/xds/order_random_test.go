package xds

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/stream/v3"
	"golang.org/x/time/rate"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/causeway-mesh/causeway/resources/store"
)

// orderedProxy is a proxy that asks for what the clusters and listeners that it accepted name, and for nothing else. It
// answers in any order, and late.
type orderedProxy struct {
	t       *testing.T
	s       *session
	dice    *rand.Rand
	subs    [kinds]*stream.Subscription
	cancels [kinds]func()
	out     [kinds]chan cache.DeltaResponse
	inbox   []*discovery.DeltaDiscoveryResponse
	nonce   int
	// has holds the versions of what the proxy accepted, refuses the names that it never does.
	has     [kinds]map[string]string
	refuses map[string]bool
	// dropped are the names to ask for again, since what asked for them was removed meanwhile.
	dropped [kinds]map[string]bool
}

// orderedKinds are the kinds of the test, in the order in which a proxy asks first.
var orderedKinds = []kind{kindCluster, kindListener, kindEndpoint, kindSecret, kindRoute}

func newOrderedProxy(t *testing.T, x *Proxies, dice *rand.Rand) *orderedProxy {
	t.Helper()
	p := &orderedProxy{t: t, s: connect(x, "ordered"), dice: dice, refuses: map[string]bool{}}
	p.s.proxy.record.requests = rate.NewLimiter(rate.Inf, 0)
	for k := range kinds {
		p.has[k], p.dropped[k], p.out[k] = map[string]string{}, map[string]bool{}, make(chan cache.DeltaResponse, 1)
	}
	return p
}

// eachReferred calls f for each name that a cluster or listener refers to: see orderedState.
func eachReferred(version string, f func(k kind, name string)) {
	_, refers, _ := strings.Cut(version, "+")
	for part := range strings.FieldsSeq(refers) {
		word, name, _ := strings.Cut(part, "=")
		f(kind(slices.IndexFunc([]kind{0, 1, 2, 3, 4}, func(k kind) bool { return k.String() == word })), name)
	}
}

// names returns what the proxy asks for of a kind.
func (p *orderedProxy) names(of kind) (out []string) {
	for _, k := range []kind{kindCluster, kindListener} {
		for _, version := range p.has[k] {
			eachReferred(version, func(k kind, name string) {
				if k == of && !slices.Contains(out, name) {
					out = append(out, name)
				}
			})
		}
	}
	slices.Sort(out)
	return out
}

// drops forgets what a cluster or listener referred to.
func (p *orderedProxy) drops(version string) {
	eachReferred(version, func(k kind, name string) {
		p.dropped[k][name] = true
		delete(p.has[k], name)
	})
}

// drain does what the server does before it reads a request: the responses leave.
func (p *orderedProxy) drain() {
	for _, k := range orderedKinds {
		select {
		case r := <-p.out[k]:
			response, err := r.GetDeltaDiscoveryResponse()
			if err != nil {
				p.t.Fatal(err)
			}
			p.nonce++
			response.Nonce = strconv.Itoa(p.nonce)
			p.s.OnStreamDeltaResponse(0, r.GetDeltaRequest(), response)
			p.subs[k].SetReturnedResources(r.GetNextVersionMap())
			p.inbox = append(p.inbox, response)
		default:
		}
	}
}

// request sends a request as the server reads it.
func (p *orderedProxy) request(k kind, req *discovery.DeltaDiscoveryRequest) {
	p.drain()
	req.TypeUrl = typeURLs[k]
	if err := p.s.OnStreamDeltaRequest(0, req); err != nil {
		p.t.Fatal(err)
	}
	if p.subs[k] == nil {
		sub := stream.NewDeltaSubscription(req.GetResourceNamesSubscribe(), nil, nil, true)
		p.subs[k] = &sub
	} else {
		if p.cancels[k] != nil {
			p.cancels[k]()
		}
		p.subs[k].UpdateResourceSubscriptions(req.GetResourceNamesSubscribe(), req.GetResourceNamesUnsubscribe())
	}
	cancel, err := p.s.CreateDeltaWatch(req, p.subs[k], p.out[k])
	if err != nil {
		p.t.Fatal(err)
	}
	p.cancels[k] = cancel
}

// asks sends a change of what the proxy asks for, and reports whether there was one.
func (p *orderedProxy) asks(k kind) bool {
	if k == kindCluster || k == kindListener {
		if p.subs[k] != nil || k == kindListener && p.subs[kindCluster] == nil {
			return false
		}
		p.request(k, &discovery.DeltaDiscoveryRequest{ResourceNamesSubscribe: []string{"*"}})
		return true
	}
	req, want := &discovery.DeltaDiscoveryRequest{}, p.names(k)
	var now map[string]struct{}
	if p.subs[k] != nil {
		now = p.subs[k].SubscribedResources()
	}
	for _, name := range want {
		if _, has := now[name]; !has || p.dropped[k][name] {
			req.ResourceNamesSubscribe = append(req.ResourceNamesSubscribe, name)
		}
	}
	for name := range now {
		if !slices.Contains(want, name) {
			req.ResourceNamesUnsubscribe = append(req.ResourceNamesUnsubscribe, name)
			delete(p.has[k], name)
		}
	}
	clear(p.dropped[k])
	if len(req.ResourceNamesSubscribe)+len(req.ResourceNamesUnsubscribe) == 0 {
		return false
	}
	p.request(k, req)
	return true
}

// answers judges the oldest response, and reports whether there was one.
func (p *orderedProxy) answers() bool {
	p.drain()
	if len(p.inbox) == 0 {
		return false
	}
	r := p.inbox[0]
	p.inbox = p.inbox[1:]
	k, _ := kindOf(r.GetTypeUrl())
	req := &discovery.DeltaDiscoveryRequest{ResponseNonce: r.GetNonce()}
	for _, one := range r.GetResources() {
		if p.refuses[one.GetName()] {
			req.ErrorDetail = &statuspb.Status{Message: one.GetName() + ": no"}
			continue
		}
		if _, changed := p.has[k][one.GetName()]; changed && k == kindCluster {
			delete(p.has[kindEndpoint], assignmentOf(one.GetName())) // it warms until these come once more
		}
		p.has[k][one.GetName()] = one.GetVersion()
	}
	for _, name := range r.GetRemovedResources() {
		p.drops(p.has[k][name])
		delete(p.has[k], name)
	}
	p.request(k, req)
	return true
}

// acts does one thing that a proxy may do next, and reports whether there was any.
func (p *orderedProxy) acts() bool {
	order := p.dice.Perm(len(orderedKinds) + 1)
	for _, n := range order {
		if n == len(orderedKinds) && p.answers() || n < len(orderedKinds) && p.asks(orderedKinds[n]) {
			return true
		}
	}
	return false
}

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

// assignmentOf returns the name of a cluster's endpoints: one is reached by way of an egress.
func assignmentOf(cluster string) string {
	if cluster == "b" {
		return egressMark + cluster
	}
	return cluster
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
			add(kindListener, "l-"+c, "")
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
