package global

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/causeway-mesh/causeway/access"
	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/tokens"
)

const (
	// scopeControlPlane is the scope that a zone token needs to speak KDS. Source: Kuma's zone tokens.
	scopeControlPlane = "cp"
	// recheckInterval bounds the time from a credential's revocation or expiry to the end of its session.
	recheckInterval = 500 * time.Millisecond
	// anonymousWarning is the interval of the warning that anonymous zones are admitted.
	anonymousWarning = time.Minute
)

// admission decides who may speak KDS as which zone. Proof is the connection's client certificate, or a bearer token if
// those are allowed. A flag can admit zones without proof, but only a zone that never had a credential.
type admission struct {
	store     store.Reader
	registry  *enrolment.Registry
	keeper    *secrets.Keeper
	authority *enrolment.Authority
	tokens    *tokens.Issuer
	adoptions *adoptions
	// allowTokens and allowAnonymous are the operator's flags.
	allowTokens, allowAnonymous bool
	now                         func() time.Time
	audit                       auditor
	log                         *slog.Logger

	// revocations counts the signals of Issuer.Revoked.
	revocations atomic.Uint64
}

// authenticate implements kds.GlobalConfig.Authenticate. It also marks the call's connection as proven or failed.
func (a *admission) authenticate(ctx context.Context) (zone string, pass kds.Pass, err error) {
	guest := guestOf(ctx)
	if !guest.Try() {
		return "", nil, fmt.Errorf("%w: too many calls without a credential", kds.ErrUnauthenticated)
	}
	zone, pass, err = a.let(ctx)
	if err == nil {
		guest.Prove()
	} else {
		guest.Fail()
	}
	return zone, pass, err
}

func (a *admission) let(ctx context.Context) (zone string, _ kds.Pass, err error) {
	md, _ := metadata.FromIncomingContext(ctx)
	if zone, err = kds.ClientID(md); err != nil {
		// The caller is refused either way.
		_ = a.audit.record(ctx, auditEvent{Verb: tryConnect, Method: access.Anonymously, Err: err})
		return "", nil, err
	}
	pass, how, err := a.judge(ctx, zone)
	if err != nil {
		// The caller is refused either way.
		_ = a.audit.record(ctx, auditEvent{Verb: tryConnect, Zone: zone, Method: how, Err: err})
		return "", nil, fmt.Errorf("zone %s: %w", zone, err)
	}
	return zone, pass, nil
}

// judge also returns the method of proof that the zone tried.
func (a *admission) judge(ctx context.Context, zone string) (pass kds.Pass, how access.Method, err error) {
	if connection := connectionOf(ctx); connection != nil {
		pass, err := a.byCertificate(connection, zone)
		if err == nil {
			pass, err = a.beside(ctx, pass, zone)
		}
		return pass, access.ByCertificate, err
	}
	if token, given := bearer(ctx); given && a.allowTokens {
		pass, err := a.byToken(ctx, token, zone)
		return pass, access.ByToken, err
	} else if given {
		return nil, access.ByToken, fmt.Errorf("%w: zone tokens are not taken here: start the global with --kds-zone-tokens, or send none", kds.ErrUnauthenticated)
	}
	pass, err = a.anonymous(ctx, zone)
	return pass, access.Anonymously, err
}

// beside also checks a token sent beside a certificate: it does not ignore an invalid token or one of another zone.
// Without zone tokens, it refuses any token.
func (a *admission) beside(ctx context.Context, certificate kds.Pass, zone string) (kds.Pass, error) {
	token, given := bearer(ctx)
	if !given {
		return certificate, nil
	}
	if !a.allowTokens {
		return nil, fmt.Errorf("%w: a token beside a certificate, and zone tokens are not taken here: send the certificate alone", kds.ErrUnauthenticated)
	}
	pass, err := a.byToken(ctx, token, zone)
	return bothPasses{certificate, pass}, err
}

// bothPasses is valid while both passes are.
type bothPasses [2]kds.Pass

// Err implements kds.Pass.
func (p bothPasses) Err() error {
	if err := p[0].Err(); err != nil {
		return err
	}
	return p[1].Err()
}

// known refuses zones that this global never had or has deleted. A credential does not bring one back.
func (a *admission) known(m *enrolment.Record, zone string) error {
	switch {
	case m == nil:
		return fmt.Errorf("%w: this global has not admitted this zone", kds.ErrUnauthenticated)
	case m.Leaving(a.now()), !m.DeletedAt.IsZero(), a.store.Snapshot().Get(kds.ZoneKey(zone)) == nil:
		return fmt.Errorf("%w: the zone was deleted", kds.ErrUnauthenticated)
	}
	return nil
}

// judgeShown verifies the certificates that a client presented in its handshake.
func (a *admission) judgeShown(shown []*x509.Certificate) (enrolment.Certificate, error) {
	return a.authority.Verify(context.Background(), shown)
}

func (a *admission) byCertificate(connection *zoneConnection, zone string) (kds.Pass, error) {
	held, err := connection.now()
	if err != nil {
		return nil, err
	}
	if held.Zone != zone {
		return nil, fmt.Errorf("%w: its certificate is that of zone %s", kds.ErrNotAllowed, held.Zone)
	}
	pass := &certificatePass{admission: a, connection: connection}
	err = pass.Err()
	if errors.Is(err, errUnrecorded) {
		a.adoptions.note(held, err)
	}
	return pass, err
}

// certificatePass is valid while the zone's record holds the connection's certificate.
type certificatePass struct {
	admission  *admission
	connection *zoneConnection
}

// Err implements kds.Pass.
func (p *certificatePass) Err() error {
	a, ctx := p.admission, context.Background()
	held, err := p.connection.now()
	if err != nil {
		return err
	}
	m, _, err := a.registry.Get(ctx, held.Zone)
	if err != nil {
		return fmt.Errorf("%w: %w", kds.ErrUnauthenticated, err)
	}
	switch {
	case a.now().After(held.Expires):
		return enrolment.Expired(held.Expires, a.now())
	case !a.authority.Accepts(ctx, held.Authority):
		return fmt.Errorf("%w: the authority of the zone's certificate was retired", kds.ErrUnauthenticated)
	case lacks(m, held):
		return fmt.Errorf("%w: %w", kds.ErrUnauthenticated, errUnrecorded)
	}
	if err := a.known(m, held.Zone); err != nil {
		return err
	}
	switch {
	case m.ID == "":
		return fmt.Errorf("%w: the zone was deleted, and registered anew: its server has to join again", kds.ErrUnauthenticated)
	case m.ID != held.ID:
		return fmt.Errorf("%w: another server has joined as this zone since", kds.ErrUnauthenticated)
	case m.Certificate(held.Serial) == nil:
		return fmt.Errorf("%w: the zone's certificate was revoked", kds.ErrUnauthenticated)
	}
	return nil
}

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
}

// verify verifies the token again.
func (p *tokenPass) verify(ctx context.Context) error {
	claims, err := p.admission.tokens.Verify(p.token, tokens.AudienceZone)
	if err != nil {
		return tokenRefused(err)
	}
	if claims.Zone != p.zone {
		return fmt.Errorf("%w: its token is that of another zone", kds.ErrNotAllowed)
	}
	if !slices.Contains(claims.Scopes, scopeControlPlane) {
		return fmt.Errorf("%w: its token has not the scope %q", kds.ErrNotAllowed, scopeControlPlane)
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
	if err := p.admission.known(m, p.zone); err != nil {
		return err
	}
	own := slices.ContainsFunc(m.Tokens, func(t enrolment.IssuedToken) bool { return t.ID == p.id })
	if !own && !p.issued.After(m.RevokedAt) {
		return fmt.Errorf("%w: the token was revoked", kds.ErrUnauthenticated)
	}
	return nil
}

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

func (a *admission) anonymous(ctx context.Context, zone string) (kds.Pass, error) {
	if !a.allowAnonymous {
		return nil, fmt.Errorf("%w: this global lets in only zones that have joined it: causewayctl zone create %s makes a join string", kds.ErrUnauthenticated, zone)
	}
	pass := &anonymousPass{admission: a, zone: zone}
	return pass, pass.errNow(ctx)
}

// anonymousPass is valid while the zone has no credential that an anonymous caller would bypass.
type anonymousPass struct {
	admission *admission
	zone      string
}

// Err implements kds.Pass.
func (p *anonymousPass) Err() error { return p.errNow(context.Background()) }

func (p *anonymousPass) errNow(ctx context.Context) error {
	m, _, err := p.admission.registry.Get(ctx, p.zone)
	if err != nil {
		return fmt.Errorf("%w: %w", kds.ErrUnauthenticated, err)
	}
	switch {
	case m == nil:
		return nil
	case m.Blank() && !m.Leaving(p.admission.now()): // the server that was deleting the zone has stopped
		return nil
	case m.Leaving(p.admission.now()), !m.DeletedAt.IsZero():
		return fmt.Errorf("%w: the zone was deleted: causewayctl zone create %s makes a join string",
			kds.ErrUnauthenticated, p.zone)
	}
	return fmt.Errorf("%w: this zone has credentials of its own, and comes in by nothing else", kds.ErrUnauthenticated)
}

// run ends sessions whose credentials no longer hold, until ctx ends, and warns every minute if anonymous zones are
// admitted.
func (a *admission) run(ctx context.Context, recheck func()) error {
	tick := time.NewTicker(recheckInterval)
	defer tick.Stop()
	warn := time.NewTicker(anonymousWarning)
	defer warn.Stop()
	a.warnAnonymous()
	revoked := a.tokens.Revoked()
	for {
		select {
		case <-tick.C:
			recheck()
		case <-revoked:
			revoked = a.tokens.Revoked()
			a.revocations.Add(1)
			recheck()
		case <-warn.C:
			a.warnAnonymous()
		case <-ctx.Done():
			return nil
		}
	}
}

func (a *admission) warnAnonymous() {
	if a.allowAnonymous {
		a.log.Warn("zones are admitted without credentials: anybody who reaches the KDS port can impersonate any zone that has not joined; start without --kds-insecure-anonymous")
	}
}
