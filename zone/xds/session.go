package xds

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/resources"
)

// session is one ADS stream. It is the cache and the callbacks of its own go-control-plane server, so a request on the
// stream can only find resources of the stream's own proxy. The stream's goroutine calls all methods but wake.
type session struct {
	proxies *Proxies
	log     *slog.Logger

	// Set before the first request; pass is the stream's credential.
	pass      *pass
	endStream context.CancelCauseFunc
	contexts  [2]context.Context // of the call, and of the stream's credential

	// Set by the first request, before any watch exists.
	proxy        *proxy
	node         *corev3.Node // the kept fields of the node
	measured     measured     // how its metrics are available, according to the node
	dns          *dnsServer   // where the node answers DNS queries
	subscription *subscription
	unknown      map[string]struct{}
	names        [kinds]int // number of subscribed names

	mu       sync.Mutex
	watches  [kinds]*watch // guarded by mu
	lastSent [kinds]set    // guarded by mu: last response on the stream, of the kinds that others wait for
	asked    [kinds]bool   // guarded by mu: the stream asks for these
	ordered  bool          // guarded by mu: it asks for all clusters, so resources that refer to them come after
	// forwarders holds the versions of the forwarders that the stream asks for and has; guarded by mu.
	forwarders map[string]string
	refused    [kinds]bool         // guarded by mu: the proxy has refused a response of the kind at some time
	again      map[string]struct{} // guarded by mu: clusters whose endpoints to send again, see repeatLocked
	suspects   suspects            // guarded by mu
	causes     causes              // guarded by mu
	inliner    *inliner            // guarded by mu: set for clients that do not accept filters by ECDS
}

// watch waits until the proxy should have something other than the stream last sent.
type watch struct {
	// respond hands over the response and reports true if there is a difference. It is called after each change until
	// then, with session.mu held.
	respond func() bool
}

func newSession(x *Proxies) *session {
	return &session{proxies: x, log: x.cfg.Log}
}

// identify reads the node of the stream's first request. A later request may repeat the node but not change it.
func (s *session) identify(node *corev3.Node) error {
	if node == nil && s.proxy != nil {
		return nil
	}
	key, err := DataplaneOf(node)
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	if s.proxy != nil {
		if s.proxy.key != key {
			return status.Errorf(codes.InvalidArgument, "%v: the stream is for %s: open another one for %s", ErrNode,
				s.proxy.key, key)
		}
		return nil
	}
	if err := s.pass.check(key, s.proxies.cfg.Store.Snapshot().Get(key)); err != nil {
		return err
	}
	id := proxyID{key, isGRPC(node)}
	if id.proxyless && key.Type != resources.TypeDataplane {
		return status.Errorf(codes.InvalidArgument, "%v: %s is for an Envoy, not for %.64q", ErrNode, key,
			node.GetUserAgentName())
	}
	s.node, s.measured = &corev3.Node{Id: node.GetId()}, measuredOf(node)
	if s.dns, err = dnsOf(node); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	s.log = s.log.With("mesh", key.Mesh, "name", key.Name)
	if err := s.attached(id); err != nil {
		return err
	}
	if s.pass != nil { // from here on the stream sees every change; this catches earlier ones
		s.pass.recheck(key, s.proxies.cfg.Store.Snapshot().Get(key), s.endStream)
	}
	s.subscription = s.proxy.record.connect(node, s.proxies.cfg.Instance, s.proxies.streams.Add(1), s.proxies.cfg.Now())
	s.subscription.inlined = s.inliner != nil || id.proxyless // no other goroutine has it yet
	s.proxies.insights.mark(s.proxy.record, soon)
	s.log.Debug("proxy connected", "namespace", key.Namespace, "proxyless", id.proxyless)
	return nil
}

// end releases the stream's resources.
func (s *session) end() {
	if s.proxy == nil {
		return
	}
	if s.subscription != nil { // a panic may have happened in between
		s.proxy.record.disconnect(s.subscription, s.proxies.cfg.Now())
		s.proxies.insights.mark(s.proxy.record, soon)
	}
	s.unsubscribe()
	s.proxies.detach(s.proxy, s)
	s.abandon()
	s.log.Debug("proxy disconnected")
}

// accept checks a request's names and type. It leaves a limited number of unserved types unanswered; served is false
// for them, and nothing of such a request is kept.
func (s *session) accept(typeURL string, names []string, versions map[string]string) (served bool, err error) {
	if err := s.acceptNames(names, versions); err != nil {
		return false, err
	}
	if _, served = kindOf(typeURL); served {
		return true, nil
	}
	return false, s.acceptUnserved(typeURL)
}

// answered applies the proxy's answer to a response, once, and reports whether one was awaited. A state-of-the-world
// client that asks for other names repeats the nonce that it answered last; this does not answer what was sent
// meanwhile.
func (s *session) answered(typeURL, nonce string, of answer, problem string, rejected bool) (awaited bool) {
	k, ok := kindOf(typeURL)
	if !ok || !s.proxy.record.awaited(s.subscription, k, nonce) {
		return false
	}
	if rejected {
		s.arrived(k, "refused: "+problem)
		s.refuses(k)
	} else {
		s.arrived(k, "")
	}
	if !rejected {
		s.proxies.metrics.acks.WithLabelValues(k.String()).Inc()
		within := later
		if s.proxy.record.acknowledged(s.subscription, k, of, s.proxies.cfg.Now()) {
			within = soon
		}
		s.proxies.insights.mark(s.proxy.record, within)
		return true
	}
	problem = shorten(problem)
	s.proxies.metrics.nacks.WithLabelValues(k.String()).Inc()
	s.log.Warn("the proxy rejected a response and keeps its configuration", "type", k.String(), "nonce", nonce,
		"reason", problem)
	s.proxy.record.rejected(s.subscription, k, of, problem, s.proxies.cfg.Now())
	s.proxies.insights.mark(s.proxy.record, soon)
	s.proxies.configRefused(s.proxy, k, problem)
	return true
}

func (s *session) sent(typeURL, nonce string) {
	if k, ok := kindOf(typeURL); ok {
		s.proxies.metrics.responses.WithLabelValues(k.String()).Inc()
		s.proxy.record.sent(s.subscription, k, nonce, s.proxies.cfg.Now())
	}
}

// await responds at once if there is a difference, and otherwise waits for one. It returns a function that ends the
// wait.
func (s *session) await(k kind, respond func() bool) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[k] = true
	w := &watch{respond: respond}
	done := respond()
	if !done {
		s.watches[k] = w // before others respond: this one may wait for them
	}
	s.wakeWaitingLocked(k)
	if done {
		return nil
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.watches[k] == w {
			s.watches[k] = nil
		}
	}
}

// wake notifies the stream that its proxy's resources of a kind may have changed. Kinds that wait for it may respond
// even if nothing of it is sent, because the proxy may have its previous state again. Any goroutine may call it.
func (s *session) wake(k kind) {
	defer s.endOnPanic()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.wakeLocked(k) {
		s.wakeWaitingLocked(k)
	}
}

// repeatLocked marks the endpoints of clusters to be sent again. A proxy warms a changed cluster beside the current one
// until it receives its endpoints, and does not ask for endpoints that it has.
func (s *session) repeatLocked(clusters []string) {
	if !s.asked[kindEndpoint] {
		return
	}
	if s.again == nil {
		s.again = map[string]struct{}{}
	}
	for _, name := range clusters {
		s.again[name] = struct{}{}
	}
	s.wakeLocked(kindEndpoint)
}

// prepare builds what is built only on request.
func (s *session) prepare(k kind, sub cache.Subscription) error {
	if err := s.subscribed(k, sub); err != nil {
		return err
	}
	if k == kindSecret && (s.proxy.asks(sub.SubscribedResources()) || sub.IsWildcard()) {
		s.proxies.ensureIdentity(s.proxy)
	}
	return nil
}

// selection is what a watch has selected: out of all resources of its kind. nothing means that the proxy has it.
type selection struct {
	is       bool
	all, out set
	nothing  bool
}

// selectedByLocked returns the resources of a kind that a subscription covers and that can be sent now; ok is false
// while they are unknown. last is what the same watch has selected before, and then what it has selected now.
func (s *session) selectedByLocked(k kind, sub cache.Subscription, last *selection) (out set, ok bool) {
	if k == kindCluster {
		s.ordered = sub.IsWildcard() // also while there are none: others may be woken first when there are
	}
	var all set
	if !s.mustWaitLocked(k) {
		all, ok = s.proxy.find(k)
	}
	if ok && k == kindListener && s.inliner != nil {
		all, ok = s.inlineLocked(all)
	}
	left := false
	if ok && k == kindExtension && s.mustWaitLocked(kindRoute) {
		all, left = withoutNewForwarders(all, sub.ReturnedResources())
	}
	s.proxy.record.asks(s.subscription, k, ok && !left)
	if !ok {
		return nil, false
	}
	if last.is && last.all.is(all) {
		return last.out, true
	}
	*last = selection{is: true, all: all, out: all}
	if sub.IsWildcard() {
		s.dropRefusals(k, all)
		s.lastSent[k] = all
		return all, ok
	}
	for name := range sub.SubscribedResources() {
		if r := all.get(name); r != nil {
			out = append(out, r)
		}
	}
	out = newSet(out...)
	last.out = out
	s.dropRefusals(k, out)
	if k != kindExtension { // no kind waits for these
		s.lastSent[k] = out
	}
	return out, true
}

// dropRefusals drops refusals of resources that the stream no longer needs.
func (s *session) dropRefusals(k kind, want set) {
	if s.proxy.record.dropRefusals(s.subscription, k, want) {
		s.proxies.insights.mark(s.proxy.record, soon)
	}
}

// Fetch is part of cache.Cache; nothing here is polled.
func (s *session) Fetch(context.Context, *discovery.DiscoveryRequest) (cache.Response, error) {
	return nil, fmt.Errorf("%w: fetching is not supported, open a stream", ErrNode)
}
