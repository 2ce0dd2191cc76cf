package xds

import (
	"slices"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/uuid"
	"golang.org/x/time/rate"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/meshpb"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// maxProblem limits the text of a problem, in bytes for each source.
const maxProblem = 1024

// Sources of problems, as an insight's metadata names them.
const (
	problemConfig   = "config"
	problemIdentity = "identity"
	// problemInbounds covers inbounds that admit no client because their permissions cannot be enforced, and policies
	// on inbounds without effect.
	problemInbounds = resources.ProblemInbounds
	// problemOutbounds covers outbounds and policies on them without effect; the rest of the config is in place.
	problemOutbounds = resources.ProblemOutbounds
	// problemProxyless is why a gRPC server gets no config. problemUnsupported lists the settings that it does not
	// support; for permissions, it then enforces stricter ones.
	problemProxyless   = "proxyless-config"
	problemUnsupported = resources.ProblemProxyless
	// problemPolicies covers policies on whole proxies without effect on this one.
	problemPolicies = resources.ProblemPolicies
	// problemGateway covers the parts of a MeshGateway and its routes without effect on this proxy.
	problemGateway = resources.ProblemGateway
	// problemSpire covers the settings that a proxy with a SPIRE identity does not support.
	problemSpire = "spire"
)

// problemRefused names the kind that the proxy refused.
func problemRefused(k kind) string { return "refused-" + k.String() }

// record holds what the server observes of one Dataplane's proxy.
type record struct {
	key  resources.Key
	open int // guarded by insights.mu: number of proxies that use it
	// requests limits how often the proxy asks. It is here so that a new stream continues with the remainder of the
	// last one.
	requests *rate.Limiter

	mu            sync.Mutex
	dataplane     bool                            // guarded by mu: the Dataplane exists; without one there is no insight
	past          []*meshpb.DiscoverySubscription // guarded by mu: restored, oldest first
	subscriptions []*subscription                 // guarded by mu, oldest first
	mtls          *meshpb.DataplaneInsight_MTLS   // guarded by mu
	problems      map[string]string               // guarded by mu, by source
	written       map[string]string               // guarded by mu: the problems in the insight in the status store
	writtenAt     uint64                          // guarded by mu: revision of the status store with these problems
}

// subscription is one stream; its record's mu guards it.
type subscription struct {
	id, instance, envoy string
	// ordinal is its number among the streams opened since the start.
	ordinal          uint32
	connected, ended time.Time
	updated          time.Time
	stats            [kinds]stats
	// awaited holds the unanswered responses, the oldest first.
	awaited [kinds][]awaited
	// asked marks the kinds that the stream asks for, withheld those of them with nothing to send yet.
	asked, withheld [kinds]bool
	// brought means that the proxy had listeners when it opened the stream.
	brought bool
	// refused holds what the proxy refuses on this stream.
	refused [kinds]refusals
	// inlined means that the stream gets filters within its listeners.
	inlined bool
}

// awaited is a response without an answer, by its nonce, and when it was sent.
type awaited struct {
	nonce string
	at    time.Time
}

type stats struct{ sent, acknowledged, rejected uint64 }

func (r *record) connect(node *corev3.Node, instance string, ordinal uint32, now time.Time) *subscription {
	s := &subscription{id: uuid.NewString(), instance: instance, ordinal: ordinal, envoy: envoyVersion(node),
		connected: now}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subscriptions = append(r.subscriptions, s)
	r.dropEnded()
	return s
}

func (r *record) disconnect(s *subscription, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.ended = now
}

// brings notes that the proxy reported listeners from before the stream.
func (r *record) brings(s *subscription) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.brought = true
}

// listens reports whether the proxy has a listener, as far as known: it brought some, has accepted one, or has refused
// none.
func (r *record) listens() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.subscriptions, func(s *subscription) bool {
		n := &s.stats[kindListener]
		return s.ended.IsZero() && (s.brought || n.acknowledged > 0 || n.rejected == 0)
	})
}

// asks notes that a stream asks for a kind, and whether the server could send it.
func (r *record) asks(s *subscription, k kind, told bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.asked[k], s.withheld[k] = true, !told
}

// maxAwaited limits the nonces kept for unanswered responses of a stream, for each kind. A proxy that leaves more
// unanswered counts as behind for as long as the stream lasts.
const maxAwaited = 64

func (r *record) sent(s *subscription, k kind, nonce string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.stats[k].sent++
	if len(s.awaited[k]) == maxAwaited {
		s.awaited[k] = slices.Delete(s.awaited[k], 0, 1)
	}
	s.awaited[k] = append(s.awaited[k], awaited{nonce, now})
}

// awaited reports whether a response with the nonce was unanswered, and marks it as answered.
func (r *record) awaited(s *subscription, k kind, nonce string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(s.awaited[k], func(one awaited) bool { return one.nonce == nonce })
	if at < 0 {
		return false
	}
	s.awaited[k] = slices.Delete(s.awaited[k], at, at+1)
	return true
}

// setProblem sets the problem of a source; an empty text clears it. It reports whether that is a change.
func (r *record) setProblem(source, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.problems[source]
	r.setProblemLocked(source, text)
	return r.problems[source] != before
}

func (r *record) setProblemLocked(source, text string) {
	if text == "" {
		delete(r.problems, source)
		return
	}
	if r.problems == nil {
		r.problems = map[string]string{}
	}
	if len(text) > maxProblem { // a list that says that it is incomplete
		text = clipped(text, maxProblem-len(resources.ProblemsCut)) + resources.ProblemsCut
	}
	r.problems[source] = text
}

// shorten cuts a text.
func shorten(text string) string {
	if len(text) <= maxProblem {
		return text
	}
	return clipped(text, maxProblem)
}

// clipped cuts a text at a character boundary: an invalid character cannot be stored.
func clipped(text string, size int) string {
	return strings.Clone(strings.ToValidUTF8(text[:size], "")) // a substring would keep the whole string in memory
}

// issued notes the proxy's identity. A resumed identity does not count as a new one.
func (r *record) issued(svid *identity.SVID, resumed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	by := "identity"
	if svid.By != nil {
		by = resources.KRIOf(svid.By).String()
	}
	n := r.mtls.GetCertificateRegenerations()
	if !resumed || n == 0 {
		n++
	}
	r.mtls = &meshpb.DataplaneInsight_MTLS{
		CertificateExpirationTime:   timestamppb.New(svid.Leaf.NotAfter),
		LastCertificateRegeneration: timestamppb.New(svid.Issued()),
		CertificateRegenerations:    n,
		IssuedBackend:               by,
		SupportedBackends:           []string{by},
	}
}

func (r *record) setDataplane(there bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dataplane = there
}
