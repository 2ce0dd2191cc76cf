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

// AdmissionConfig says what proxies must show.
type AdmissionConfig struct {
	// Required: a stream without a credential is refused. Otherwise one that has none is believed, unless it may have come
	// through a proxy, and one that has a wrong one is refused all the same.
	Required bool
	// Tokens judge bearer tokens. Required.
	Tokens *tokens.Issuer
	// Store knows the Dataplanes.
	Store store.Reader
	// Identity says who a Dataplane is, and which authorities of this zone may say so. Required.
	Identity func(dp *resources.Resource) (spiffeid.ID, []*x509.Certificate, error)
	// Authorities are those of this zone that may sign for a trust domain; when nil, certificates are judged by Identity alone,
	// once it is known which proxy the stream is for.
	Authorities func(spiffeid.TrustDomain) []*x509.Certificate
	// Refused is told of each stream that was refused, by the stream's goroutine; may be nil.
	Refused func(Refusal)
	// Now is the clock; time.Now when nil.
	Now func() time.Time
	// Log is slog.Default when nil.
	Log *slog.Logger
}

// Refusal is a stream that was not let in, or not for longer.
type Refusal struct {
	// Address is the peer's, Node what it said it is, which may be empty.
	Address, Node string
	// Method is token, certificate or none; Reason one word of why.
	Method, Reason string
}

// Admission judges who opens a stream, and for which proxy. Streams of proxies and of their access logs are judged alike.
type Admission struct {
	cfg AdmissionConfig

	mu     sync.Mutex
	live   map[*pass]struct{} // guarded by mu: passes of open streams
	first  time.Time          // guarded by mu: when the first of them ends; zero for never
	sooner chan struct{}      // told when first moved forward
}

// NewAdmission returns the gate of a server. Run must run for revocations and expiry to end streams.
func NewAdmission(c AdmissionConfig) *Admission {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &Admission{cfg: c, live: map[*pass]struct{}{}, sooner: make(chan struct{}, 1)}
}

// passKey is of the context that Admit returns.
type passKey struct{}

// Admit judges what the stream of ctx shows, and returns a context by which Identify knows what that was. Errors are gRPC statuses.
func (a *Admission) Admit(ctx context.Context) (context.Context, error) {
	p, err := a.admit(ctx)
	if err != nil {
		return nil, err
	}
	return context.WithValue(ctx, passKey{}, p), nil
}

// Identify judges the stream of ctx, unless Admit has, and returns the Dataplane, or ZoneIngress, that node says it is the proxy of. When the
// credential is no longer good, end is called with a gRPC status; release is to be called when the stream ends. Still is to be asked
// before each word of the stream is believed: whether the credential is for what the Dataplane has become. Errors are gRPC statuses.
func (a *Admission) Identify(ctx context.Context, node *corev3.Node, end context.CancelCauseFunc) (key resources.Key, still func() error, release func(), err error) {
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

// admit reads what a stream shows, before anything it says is read. Errors are gRPC statuses, and say no more than needed. The
// connection of the stream is told what came of it.
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
		if err != nil {
			return nil, p.refuse(tokens.Reason(err), codes.Unauthenticated)
		}
		p.token, p.claims, p.until = token, claims, claims.Expires
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

// WithClientCertificates makes a serving configuration ask for a certificate, which Admission judges; nil stays nil.
func WithClientCertificates(config *tls.Config) *tls.Config {
	if config == nil {
		return nil
	}
	config = config.Clone()
	config.ClientAuth = tls.RequestClientCert
	return config
}

// Run ends the streams whose credentials expire or are revoked, or were signed by an authority that is retired, until ctx ends; it then returns nil.
func (a *Admission) Run(ctx context.Context) error {
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

// sweep judges the passes of all open streams again, and returns when the next of them ends. Streams open and close meanwhile. It is Run's.
func (a *Admission) sweep() (wait time.Duration, some bool) {
	a.mu.Lock()
	all := slices.Collect(maps.Keys(a.live))
	a.first = time.Time{} // those that open from here on say theirs
	a.mu.Unlock()
	now, generation, known := a.cfg.Now(), a.cfg.Tokens.Generation(), signers{a: a, found: map[spiffeid.TrustDomain][]*x509.Certificate{}}
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
