package xds

import (
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
var orderedKinds = []kind{kindCluster, kindListener, kindEndpoint, kindSecret, kindRoute, kindExtension}

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
		f(kind(slices.IndexFunc([]kind{0, 1, 2, 3, 4, 5}, func(k kind) bool { return k.String() == word })), name)
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

// assignmentOf returns the name of a cluster's endpoints: one is reached by way of an egress.
func assignmentOf(cluster string) string {
	if cluster == "b" {
		return egressMark + cluster
	}
	return cluster
}
