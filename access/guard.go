package access

import (
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/server"
	"github.com/causeway-mesh/causeway/tokens"
)

// Config is what a Guard needs from its owner.
type Config struct {
	// Store holds the roles and bindings. Required.
	Store store.Reader
	// Audit records what is done and refused; nil records nothing.
	Audit *Log
	// Issuer issues and verifies user tokens; nil accepts none.
	Issuer *tokens.Issuer
	// ClientCAs sign the certificates of users; nil accepts none.
	ClientCAs *x509.CertPool
	// OIDC verifies the tokens of an identity provider; nil accepts none.
	OIDC Verifier
	// OIDCIssuer is the issuer of those tokens, as in their claim iss.
	OIDCIssuer string
	// LocalAdmin makes a caller over plaintext loopback without a credential AdminUser.
	LocalAdmin bool
	// Limits bound the rate of requests.
	Limits Limits
	// Now is the clock; time.Now if nil.
	Now func() time.Time
	// Log is required.
	Log *slog.Logger
}

// Verifier returns the subject of a token. Errors are *LoginError.
type Verifier interface {
	Verify(r *http.Request, token string) (Subject, error)
}

// Guard protects the HTTP API. It is safe for concurrent use.
type Guard struct {
	config Config
	cache  *roleCache
	users  *limiters
	// strangers holds limiters for the addresses whose authentication failed.
	strangers *limiters
}

// NewGuard creates a guard.
func NewGuard(c Config) *Guard {
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Limits = c.Limits.withDefaults()
	return &Guard{
		config: c, cache: &roleCache{store: c.Store},
		users:     newLimiters(c.Limits.RequestsPerSecond, c.Limits.RequestsBurst, c.Now),
		strangers: newLimiters(c.Limits.FailuresPerSecond, c.Limits.FailuresBurst, c.Now),
	}
}

// Issuer returns the issuer of the server's tokens, or nil.
func (g *Guard) Issuer() *tokens.Issuer { return g.config.Issuer }

// Audit returns the audit log, or nil.
func (g *Guard) Audit() *Log { return g.config.Audit }

// Roles returns the current permissions.
func (g *Guard) Roles() *Roles { return g.cache.roles() }

// Authorize returns a *DeniedError if the subject lacks the permission.
func (g *Guard) Authorize(s Subject, a Action) error {
	if g.Allows(s, a) {
		return nil
	}
	return &DeniedError{Subject: s, Missing: a}
}

// Allows reports whether the subject has the permission.
func (g *Guard) Allows(s Subject, a Action) bool {
	if s.Only != nil {
		return s.Only(a)
	}
	return g.Roles().Allows(s, a)
}

// AllowsSome reports whether the subject may have the permission for some thing, as Roles.AllowsSome does. A credential
// with a purpose of its own is checked for the thing.
func (g *Guard) AllowsSome(s Subject, a Action) bool {
	return s.Only != nil || g.Roles().AllowsSome(s, a)
}

// ErrTooMany reports that a caller exceeds its rate limit.
var ErrTooMany = errors.New("too many requests: slow down, and try again in a second")

// Admit returns the caller of a request. Errors: *OriginError for a browser's request on behalf of another site's page,
// *LoginError if there is no valid credential, ErrTooMany with the subject, if known. Failures count against their
// address alone, so they do not delay callers who authenticate. proof, which may be nil, comes first. Admit reports the
// result to the request's connection.
func (g *Guard) Admit(r *http.Request, proof Proof) (Subject, error) {
	s, err := g.admit(r, proof)
	switch guest := server.GuestOf(r.Context()); {
	case s.Method == Anonymously || err != nil && !errors.Is(err, ErrTooMany):
		guest.Fail()
	case s.Only == nil: // a special-purpose credential is proven by its use, and needs little
		guest.Prove()
	}
	return s, err
}

func (g *Guard) admit(r *http.Request, proof Proof) (Subject, error) {
	if err := checkOrigin(r); err != nil {
		return Anonymous(), err
	}
	s, err := g.authenticate(r, proof)
	if err != nil {
		if !g.strangers.allow(addressOf(r)) {
			return Anonymous(), ErrTooMany
		}
		return Anonymous(), err
	}
	if s.Method != ByLoopback && !g.users.allow(s.Budget()) {
		return s, ErrTooMany
	}
	return s, nil
}

// Look counts a request that needs no credential. A stranger may make a few on one connection. may reports whether this
// one is allowed, and last whether it is the last.
func (g *Guard) Look(r *http.Request) (may, last bool) {
	guest := server.GuestOf(r.Context())
	return guest.Try(), guest.Tried()
}

// Readmit verifies again the credential of a request that was admitted as s and has waited since. Errors: *LoginError,
// also if the credential now belongs to another subject.
func (g *Guard) Readmit(r *http.Request, proof Proof, s Subject) (Subject, error) {
	if s.Method == ByLoopback || s.Method == Anonymously {
		return s, nil // no credential was sent that could have been revoked
	}
	now, err := g.authenticate(r, proof)
	if err == nil && (now.Name != s.Name || now.Method != s.Method) {
		err = &LoginError{Method: s.Method, Claimed: s.Name, Reason: "the credential now belongs to " + now.Name,
			Hint: "the credential is no longer yours"}
	}
	return now, err
}

// addressOf returns the address for counting failures: an IPv4 address, or the network of an IPv6 one.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(host)
	if err != nil || ip == nil {
		return r.RemoteAddr
	}
	if ip.To4() == nil {
		return ip.Mask(net.CIDRMask(64, 128)).String()
	}
	return ip.String()
}
