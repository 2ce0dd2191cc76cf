package xds

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/tokens"
)

// AdmissionConfig sets what proxies must present.
type AdmissionConfig struct {
	// Required refuses a stream without a credential. Otherwise the server believes such a stream, unless it may have
	// come through a proxy. A wrong credential is always refused.
	Required bool
	// Tokens verifies bearer tokens. Required.
	Tokens *tokens.Issuer
	// Pods verifies the tokens that Kubernetes makes for pods; nil where there are none. Home is then required: the zone.
	Pods PodTokens
	Home resources.Home
	// Store holds the Dataplanes.
	Store store.Reader
	// Identity returns the SPIFFE ID of a Dataplane, and the authorities of this zone that may sign it. Required.
	Identity func(dp *resources.Resource) (spiffeid.ID, []*x509.Certificate, error)
	// Authorities returns the authorities of this zone that may sign for a trust domain. If nil, Identity alone judges
	// certificates, once the stream's proxy is known.
	Authorities func(spiffeid.TrustDomain) []*x509.Certificate
	// Refused is called for each refused stream, by the stream's goroutine; may be nil.
	Refused func(Refusal)
	// Now is the clock; time.Now when nil.
	Now func() time.Time
	// Log is slog.Default when nil.
	Log *slog.Logger
}

// Refusal describes a stream that was refused or ended by admission.
type Refusal struct {
	// Address is the peer's address, Node the node ID that it claims, which may be empty.
	Address, Node string
	// Method is token, pod, certificate or none; Reason is one word.
	Method, Reason string
}

// Admission decides who may open a stream, and for which proxy. It treats the streams of proxies and of their access
// logs alike.
type Admission struct {
	cfg AdmissionConfig

	mu     sync.Mutex
	live   map[*pass]struct{} // guarded by mu: passes of open streams
	first  time.Time          // guarded by mu: when the first of them ends; zero means never
	sooner chan struct{}      // signalled when first moves forward
}

// NewAdmission returns the admission of a server. Revocations and expiry end streams only while Run runs.
func NewAdmission(c AdmissionConfig) *Admission {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &Admission{cfg: c, live: map[*pass]struct{}{}, sooner: make(chan struct{}, 1)}
}

// passKey is the key of the pass in the context that Admit returns.
type passKey struct{}

// Admit judges the credential of ctx's stream, and returns a context that carries the result to Identify. Errors are
// gRPC statuses.
func (a *Admission) Admit(ctx context.Context) (context.Context, error) {
	p, err := a.admit(ctx)
	if err != nil {
		return nil, err
	}
	return context.WithValue(ctx, passKey{}, p), nil
}

// Identify judges the stream of ctx, unless Admit has, and returns the Dataplane or ZoneIngress whose proxy the node
// claims to be. When the credential stops being valid, it calls end with a gRPC status. The caller calls release when
// the stream ends, and calls still before it believes a message: still checks the credential against the current
// Dataplane. Errors are gRPC statuses.
func (a *Admission) Identify(ctx context.Context, node *corev3.Node, end context.CancelCauseFunc) (key resources.Key,
	still func() error, release func(), err error) {
	p, admitted := ctx.Value(passKey{}).(*pass)
	if !admitted {
		if p, err = a.admit(ctx); err != nil {
			return resources.Key{}, nil, nil, err
		}
	}
	if key, err = DataplaneOf(node); err != nil {
		return key, nil, nil, status.Error(codes.InvalidArgument, err.Error())
	}
	judged := a.cfg.Store.Snapshot().Get(key)
	if err = p.check(key, judged); err != nil {
		return key, nil, nil, err
	}
	p.open(end)
	still = func() error {
		now := a.cfg.Store.Snapshot().Get(key)
		if now == judged {
			return nil
		}
		judged = now
		return p.check(key, now)
	}
	return key, still, p.close, nil
}

// admit reads the credential of a stream before anything else it sends. Errors are gRPC statuses, and reveal no more
// than needed. It reports the result to the stream's connection.
func (a *Admission) admit(ctx context.Context) (*pass, error) {
	from, _ := peer.FromContext(ctx)
	var guest *server.Guest
	if from != nil {
		guest = server.GuestAt(from.Addr)
	}
	if !guest.Try() {
		return nil, status.Error(codes.ResourceExhausted, "too many streams without a credential")
	}
	p, err := a.judge(ctx, from)
	if err != nil {
		guest.Fail()
	} else {
		guest.Prove()
	}
	return p, err
}

func (a *Admission) judge(ctx context.Context, from *peer.Peer) (*pass, error) {
	if a == nil {
		return nil, nil
	}
	p := &pass{admission: a, end: func(error) {}}
	if from != nil {
		p.address = from.Addr.String()
	}
	if values := metadata.ValueFromIncomingContext(ctx, "authorization"); len(values) > 0 {
		p.method = methodToken
		token, bearer := strings.CutPrefix(values[0], "Bearer ")
		if len(values) > 1 || !bearer {
			return nil, p.refuse("malformed", codes.Unauthenticated)
		}
		p.judged = a.cfg.Tokens.Generation()
		claims, err := a.cfg.Tokens.Verify(token, tokens.AudienceDataplane)
		switch {
		case err == nil:
			p.token, p.claims, p.until = token, claims, claims.Expires
		case a.cfg.Pods != nil && isForeign(err):
			if err := p.showPod(ctx, token); err != nil {
				return nil, err
			}
		default:
			return nil, p.refuse(tokens.Reason(err), codes.Unauthenticated)
		}
	}
	if chain := certificatesOf(from); len(chain) > 0 {
		p.show(chain)
		if !p.signedHere(signers{a: a}) {
			return nil, p.refuse("another-proxy", codes.PermissionDenied)
		}
	}
	if p.method == methodNone && a.cfg.Required {
		return nil, p.refuse("missing", codes.Unauthenticated)
	}
	if p.method == methodNone && forwardedBy(ctx) != "" {
		return nil, p.refuse("forwarded", codes.Unauthenticated)
	}
	return p, nil
}

func certificatesOf(from *peer.Peer) []*x509.Certificate {
	if from == nil {
		return nil
	}
	info, ok := from.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return nil
	}
	return info.State.PeerCertificates
}

// WithClientCertificates makes a serving configuration request a client certificate, which Admission judges; nil stays
// nil.
func WithClientCertificates(config *tls.Config) *tls.Config {
	if config == nil {
		return nil
	}
	config = config.Clone()
	config.ClientAuth = tls.RequestClientCert
	return config
}

// Run ends the streams whose credential expires, is revoked, was signed by a retired authority, or belongs to a deleted
// pod, until ctx ends; it then returns nil.
func (a *Admission) Run(ctx context.Context) error {
	return server.Together(ctx, a.watch, a.watchPods)
}

// watch is Run for everything but the tokens of pods.
func (a *Admission) watch(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		changed := a.cfg.Tokens.Revoked()
		timer.Stop()
		if wait, some := a.sweep(); some {
			timer.Reset(min(wait, renewalLook))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-a.sooner:
		case <-timer.C:
		}
	}
}

// sweep judges the passes of all open streams again, and returns the time until the next one ends. Streams may open and
// close meanwhile. Only Run calls it.
func (a *Admission) sweep() (wait time.Duration, some bool) {
	a.mu.Lock()
	all := slices.Collect(maps.Keys(a.live))
	a.first = time.Time{} // streams that open from here on set their own
	a.mu.Unlock()
	now, generation, known := a.cfg.Now(), a.cfg.Tokens.Generation(),
		signers{a: a, found: map[spiffeid.TrustDomain][]*x509.Certificate{}}
	var first time.Time
	over := map[*pass]string{}
	for _, p := range all {
		if reason := p.over(now, generation, known); reason != "" {
			over[p] = reason
		} else if first.IsZero() || p.until.Before(first) {
			first = p.until
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for p, reason := range over {
		if _, open := a.live[p]; open {
			delete(a.live, p)
			p.end(&ended{pass: p, reason: reason, code: codes.Unauthenticated})
		}
	}
	if a.first.IsZero() || !first.IsZero() && first.Before(a.first) {
		a.first = first
	}
	return max(a.first.Sub(now), 0), !a.first.IsZero()
}
