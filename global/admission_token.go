package global

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/tokens"
)

// scopeControlPlane is the scope that a zone token needs to speak KDS. Source: Kuma's zone tokens.
const scopeControlPlane = "cp"

// bearer returns the token in the metadata: `authorization: Bearer <token>`, as Kuma sends it, or the token alone.
func bearer(ctx context.Context) (token string, given bool) {
	md, _ := metadata.FromIncomingContext(ctx)
	values := md.Get("authorization")
	if len(values) == 0 {
		return "", false
	}
	if len(values) > 1 {
		return "", true
	}
	scheme, token, found := strings.Cut(values[0], " ")
	if !found {
		return scheme, true
	}
	if !strings.EqualFold(scheme, "bearer") {
		return "", true
	}
	return token, true
}

func (a *admission) byToken(ctx context.Context, token, zone string) (kds.Pass, error) {
	pass := &tokenPass{admission: a, token: token, zone: zone, revocations: a.revocations.Load()}
	return pass, pass.verify(ctx)
}

// tokenPass is valid while the token is.
type tokenPass struct {
	admission   *admission
	token, zone string
	expires     time.Time
	id          string
	issued      time.Time
	revocations uint64
	// admitted is set once the token was taken; withdrawn is when the zone had been revoked until then.
	admitted  bool
	withdrawn time.Time
}

// verify verifies the token again.
func (p *tokenPass) verify(ctx context.Context) error {
	claims, err := p.admission.tokens.Verify(p.token, tokens.AudienceZone)
	if err != nil {
		return tokenRefused(err)
	}
	if claims.Zone != p.zone {
		return fmt.Errorf("%w: its token is for another zone", kds.ErrNotAllowed)
	}
	if !slices.Contains(claims.Scopes, scopeControlPlane) {
		return fmt.Errorf("%w: its token lacks the scope %q", kds.ErrNotAllowed, scopeControlPlane)
	}
	p.id, p.expires, p.issued = claims.ID, claims.Expires, claims.IssuedAt
	return p.listed(ctx)
}

// tokenRefused returns the error for the peer, with no more detail than it needs. The audit log has the exact reason.
func tokenRefused(err error) error {
	if tokens.OfTime(err) {
		return fmt.Errorf("%w: %w", kds.ErrUnauthenticated, err)
	}
	return &refusedToken{why: err}
}

// refusedToken hides the reason. what is the message for the peer; if it is empty, the message names a token.
type refusedToken struct {
	what string
	why  error
}

func (r *refusedToken) Error() string {
	return kds.ErrUnauthenticated.Error() + ": " + cmp.Or(r.what, "the token is not accepted")
}

// Unwrap returns ErrUnauthenticated.
func (*refusedToken) Unwrap() error { return kds.ErrUnauthenticated }

// listed checks that the zone's record still lists this token. The record does not list a token of another issuer,
// whose key was imported: it is valid unless it is older than the last revocation.
func (p *tokenPass) listed(ctx context.Context) error {
	m, _, err := p.admission.registry.Get(ctx, p.zone)
	if err != nil {
		return fmt.Errorf("%w: %w", kds.ErrUnauthenticated, err)
	}
	own := m != nil && slices.ContainsFunc(m.Tokens, func(t enrolment.IssuedToken) bool { return t.ID == p.id })
	var ended error
	if p.admitted && !own && m != nil && !m.RevokedAt.Equal(p.withdrawn) {
		ended = p.inUse(ctx, m)
	}
	switch err := p.admission.checkAdmitted(m, p.zone); {
	case err != nil:
		return err
	case ended != nil:
		return ended
	case !own && !p.issued.After(m.RevokedAt):
		return errTokenRevoked
	}
	if !p.admitted {
		p.admitted, p.withdrawn = true, m.RevokedAt
	}
	return nil
}

var errTokenRevoked = fmt.Errorf("%w: the token was revoked", kds.ErrUnauthenticated)

// revokingTime bounds the write of inUse, which holds up the sessions of a replica.
const revokingTime = 5 * time.Second

// inUse revokes a token of another issuer that was in use when its zone was revoked. The server that revoked it may have a
// clock that is behind the issuer's: by the times alone, the token would be newer than the revocation.
func (p *tokenPass) inUse(ctx context.Context, m *enrolment.Record) error {
	if !p.issued.After(m.RevokedAt) {
		return errTokenRevoked
	}
	ctx, cancel := context.WithTimeout(ctx, revokingTime)
	defer cancel()
	err := p.admission.registry.Update(ctx, p.zone, func(m *enrolment.Record) error {
		if !p.issued.After(m.RevokedAt) {
			return enrolment.ErrNothing
		}
		m.RevokedAt = p.issued.UTC()
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errTokenRevoked, err)
	}
	return errTokenRevoked
}

// Until implements kds.Pass.
func (p *tokenPass) Until() time.Time { return first(p.expires, p.admission.leaves(p.zone)) }

// Err implements kds.Pass. Only one goroutine at a time calls it, under the lock of the sessions.
func (p *tokenPass) Err() error {
	if now := p.admission.now(); now.After(p.expires) {
		return fmt.Errorf("%w: the token has expired, by this server's clock, which says %s", kds.ErrUnauthenticated,
			now.UTC().Format(time.RFC3339))
	}
	if now := p.admission.revocations.Load(); now != p.revocations {
		p.revocations = now
		return p.verify(context.Background())
	}
	return p.listed(context.Background())
}
