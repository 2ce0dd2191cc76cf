package xds

import (
	"context"
	"crypto/x509"
	"errors"
	"sync/atomic"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/kubernetes/podtoken"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/tokens"
	"github.com/causeway-mesh/causeway/zone/identity"
)

// Methods by which a stream can prove its identity.
const (
	methodNone        = ""
	methodToken       = "token"
	methodPod         = "pod"
	methodCertificate = "certificate"
)

// Reasons of refusals for pods.
const (
	reasonUnavailable = "unavailable"
	reasonNoPod       = "no-pod"
)

// ScopeZoneIngress is the scope of tokens for the proxies of ZoneIngresses.
const ScopeZoneIngress = "zone-ingress"

// pass holds the credential of a stream. A nil pass allows everything: a server without an Admission uses it.
type pass struct {
	admission *Admission
	address   string
	method    string
	token     string
	claims    tokens.Claims
	// pod is the pod that presents the token, for the method pod.
	pod podtoken.Pod
	// judged identifies the keys and revocations with which the token was last found valid. Only the goroutine that
	// judges it again uses it.
	judged tokens.Generation
	// chain is unverified until check. Beside a token, it must belong to the same proxy.
	chain []*x509.Certificate
	// signers holds the authorities with which the chain was last found valid. Only the goroutine that judges it again
	// uses it.
	signers []*x509.Certificate
	until   time.Time    // zero means forever
	node    atomic.Value // string: the node of the last check

	end   context.CancelCauseFunc // guarded by admission.mu
	asked time.Time               // guarded by admission.mu once it is open: when the API server last confirmed the token
}

// ended is the reason why an admitted stream was ended.
type ended struct {
	pass   *pass
	reason string
	code   codes.Code
}

func (e *ended) Error() string { return "the stream's credential is no longer valid: " + e.reason }

// refuse reports a refusal and returns the error for the peer.
func (p *pass) refuse(reason string, code codes.Code) error {
	node, _ := p.node.Load().(string)
	p.admission.cfg.Log.Warn("refused a proxy's stream", "address", p.address, "node", node, "method", p.method,
		"reason", reason)
	if p.admission.cfg.Refused != nil {
		p.admission.cfg.Refused(Refusal{Address: p.address, Node: node, Method: p.method, Reason: reason})
	}
	switch {
	case p.method == methodNone:
		return status.Error(code,
			"a dataplane token or an SVID of this zone is required: see causewayctl dataplane token --help")
	case code == codes.Unavailable:
		return status.Error(code, "the Kubernetes API server does not say whose token it is: try again")
	case code == codes.PermissionDenied:
		return status.Error(code, "the credential is not for this proxy")
	default:
		return status.Error(code, "the credential was refused")
	}
}

// endedBy converts the cause of a stream's end into the error for its peer; nil for any other cause.
func endedBy(cause error) error {
	var e *ended
	if errors.As(cause, &e) {
		return e.pass.refuse(e.reason, e.code)
	}
	return nil
}

// open registers the pass of a stream. Admission calls end when the pass is no longer valid.
func (p *pass) open(end context.CancelCauseFunc) {
	if p == nil || p.method == methodNone {
		return
	}
	a := p.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	p.end = end
	a.live[p] = struct{}{}
	if a.first.IsZero() || p.until.Before(a.first) {
		a.first = p.until
		select {
		case a.sooner <- struct{}{}:
		default:
		}
	}
}

func (p *pass) close() {
	if p == nil {
		return
	}
	p.admission.mu.Lock()
	defer p.admission.mu.Unlock()
	delete(p.admission.live, p)
}

// over returns why the credential is no longer valid, or nothing. It verifies a token again only if keys, revocations
// or the token's own times require it, and a certificate only if authorities were added or removed.
func (p *pass) over(now time.Time, g tokens.Generation, known signers) string {
	if len(p.chain) > 0 && now.Before(p.chain[0].NotAfter) && !p.signedHere(known) {
		return "unknown-authority"
	}
	if p.method == methodToken && (len(p.chain) == 0 || now.Before(p.chain[0].NotAfter)) {
		if p.judged == g && now.Before(p.claims.Expires) && !now.Before(p.claims.NotBefore) {
			return ""
		}
		if _, err := p.admission.cfg.Tokens.Verify(p.token, tokens.AudienceDataplane); err != nil {
			return tokens.Reason(err)
		}
		p.judged = g
		return ""
	}
	if !now.Before(p.until) {
		return tokens.Reason(tokens.ErrExpired)
	}
	return ""
}

// check reports whether the pass is for the proxy of the given key. r is the proxy's current resource, or nil. Errors
// are gRPC statuses.
func (p *pass) check(key resources.Key, r *resources.Resource) error {
	if p == nil {
		return nil
	}
	p.node.Store(NodeID(key.Mesh, key.Name))
	if !p.fits(key, r) {
		return p.refuse("another-proxy", codes.PermissionDenied)
	}
	return nil
}

// recheck ends the stream if the pass does not match the changed Dataplane. It reports nothing itself.
func (p *pass) recheck(key resources.Key, r *resources.Resource, end context.CancelCauseFunc) {
	if p != nil && !p.fits(key, r) {
		end(&ended{pass: p, reason: "another-proxy", code: codes.PermissionDenied})
	}
}

func (p *pass) fits(key resources.Key, r *resources.Resource) bool {
	switch p.method {
	case methodToken:
		return bound(&p.claims, key, r) && (len(p.chain) == 0 || p.is(r))
	case methodPod:
		return p.isPod(key, r) && (len(p.chain) == 0 || p.is(r))
	case methodCertificate:
		return p.is(r)
	}
	return true
}

// show adds a client's certificate to the credentials that the pass depends on, even beside a token.
func (p *pass) show(chain []*x509.Certificate) {
	p.chain = chain
	if p.method == methodNone {
		p.method = methodCertificate
	}
	if p.until.IsZero() || chain[0].NotAfter.Before(p.until) {
		p.until = chain[0].NotAfter
	}
}

// is compares a client certificate with the identity of the Dataplane. It accepts only an authority of this zone:
// another zone's authority must not open streams here, whatever it signs.
func (p *pass) is(r *resources.Resource) bool {
	if r == nil || r.Type != resources.TypeDataplane {
		return false
	}
	want, authorities, err := p.admission.cfg.Identity(r)
	if err != nil {
		return false
	}
	bundle := x509bundle.FromX509Authorities(want.TrustDomain(), authorities)
	id, _, err := x509svid.Verify(p.chain, bundle, x509svid.WithTime(p.admission.cfg.Now()))
	return err == nil && id == want
}

// bound compares a token with the proxy. Everything that the token names must match, and it must name something. The
// name includes the namespace. Without a name, the label gives the namespace, and a token with neither is for
// Dataplanes without a namespace.
func bound(c *tokens.Claims, key resources.Key, r *resources.Resource) bool {
	if key.Type == resources.TypeZoneIngress {
		return c.Mesh == "" && len(c.Scopes) == 1 && c.Scopes[0] == ScopeZoneIngress && c.Dataplane == key.Name
	}
	switch {
	case c.Mesh == "" || c.Mesh != key.Mesh || len(c.Scopes) > 0:
		return false
	case c.Dataplane == "" && c.Workload == "" && len(c.Labels) == 0:
		return false
	case c.Dataplane != "" && c.Dataplane != QualifiedName(key):
		return false
	case c.Dataplane == "" && c.Labels[resources.LabelNamespace] != key.Namespace:
		return false
	case (c.Workload != "" || len(c.Labels) > 0) && r == nil:
		return false // the Dataplane does not exist yet, so its labels are unknown
	case c.Workload != "" && c.Workload != identity.WorkloadOf(r):
		return false
	}
	for label, value := range c.Labels {
		if got, ok := r.Labels[label]; !ok || got != value {
			return false
		}
	}
	return true
}

// QualifiedName returns the name of a Dataplane in dataplane tokens: `<namespace>/<name>`, or the name alone without a
// namespace.
func QualifiedName(key resources.Key) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}
