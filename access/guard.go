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
	// Audit gets what is done and refused; nil records nothing.
	Audit *Log
	// Issuer issues and verifies user tokens; nil accepts none.
	Issuer *tokens.Issuer
	// ClientCAs sign the certificates of users; nil accepts none.
	ClientCAs *x509.CertPool
	// OIDC verifies the tokens of an identity provider; nil accepts none.
	OIDC Verifier
	// OIDCIssuer is the issuer of those tokens, as their claim iss spells it.
	OIDCIssuer string
	// LocalAdmin makes a caller over loopback, in plaintext and without a credential, AdminUser.
	LocalAdmin bool
	// Limits bound the rate of requests.
	Limits Limits
	// Now is time.Now when nil.
	Now func() time.Time
	// Log is required.
	Log *slog.Logger
}

// Verifier returns the subject of a token. Errors are *LoginError.
type Verifier interface {
	Verify(r *http.Request, token string) (Subject, error)
}

// Guard stands in front of the HTTP API. It is safe for concurrent use.
type Guard struct {
	config Config
	cache  *roleCache
	users  *limiters
	// strangers holds limiters for the addresses whose authentication failed.
	strangers *limiters
}

// NewGuard returns a guard.
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

// Issuer returns the issuer of the server's tokens; nil if there is none.
func (g *Guard) Issuer() *tokens.Issuer { return g.config.Issuer }

// Audit returns the audit log; nil if there is none.
func (g *Guard) Audit() *Log { return g.config.Audit }

// Roles are the permissions as of now.
func (g *Guard) Roles() *Roles { return g.cache.roles() }

// Authorize returns a *DeniedError when the subject lacks the permission.
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

// AllowsSome reports whether there may be something that the subject has the permission for, as Roles.AllowsSome does.
// A credential with a purpose of its own is judged by the thing.
func (g *Guard) AllowsSome(s Subject, a Action) bool {
	return s.Only != nil || g.Roles().AllowsSome(s, a)
}

// ErrTooMany reports that a caller exceeds its rate limit.
var ErrTooMany = errors.New("too many requests: slow down, and try again in a second")

// Admit returns the caller of a request. Errors: *OriginError for what a browser did for a foreign page, *LoginError if
// there is no valid credential, ErrTooMany with the subject, as far as it is known. Failures count against their
// address alone, so they do not delay callers who authenticate. proof, which may be nil, comes before all else. Admit
// reports the result to the request's connection.
func (g *Guard) Admit(r *http.Request, proof Proof) (Subject, error) {
	s, err := g.admit(r, proof)
	switch guest := server.GuestOf(r.Context()); {
	case s.Method == Anonymously || err != nil && !errors.Is(err, ErrTooMany):
		guest.Fail()
	case s.Only == nil: // what has a purpose of its own is proven by what it is used for, and needs little
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

// Look counts a request that needs no credential. A stranger makes a few on one connection: last reports that this is the
// last of them, and may whether it was not one too many.
func (g *Guard) Look(r *http.Request) (may, last bool) {
	guest := server.GuestOf(r.Context())
	return guest.Try(), guest.Tried()
}

// Readmit verifies the credential of a request that was admitted as s and has waited since. Errors: *LoginError, also
// where the credential is now another's.
func (g *Guard) Readmit(r *http.Request, proof Proof, s Subject) (Subject, error) {
	if s.Method == ByLoopback || s.Method == Anonymously {
		return s, nil // nothing was shown that could have been revoked
	}
	now, err := g.authenticate(r, proof)
	if err == nil && (now.Name != s.Name || now.Method != s.Method) {
		err = &LoginError{Method: s.Method, Claimed: s.Name, Reason: "the credential now belongs to " + now.Name,
			Hint: "the credential is no longer yours"}
	}
	return now, err
}

// addressOf returns the address by which failures are counted: an IPv4 address, or the network of an IPv6 one.
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
