package global

import (
	"context"
	"fmt"
	"log/slog"
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
	rechecks    rechecks
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
		return nil, access.ByToken, fmt.Errorf("%w: this global does not accept zone tokens: start it with --kds-zone-tokens, or send none", kds.ErrUnauthenticated)
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
		return nil, fmt.Errorf("%w: a token beside a certificate, and this global does not accept zone tokens: send the certificate alone", kds.ErrUnauthenticated)
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

// Until implements kds.Pass.
func (p bothPasses) Until() time.Time { return first(p[0].Until(), p[1].Until()) }

// checkAdmitted refuses zones that this global never had or has deleted. A credential does not bring one back.
func (a *admission) checkAdmitted(m *enrolment.Record, zone string) error {
	switch {
	case m == nil:
		return fmt.Errorf("%w: this global has not admitted this zone", kds.ErrUnauthenticated)
	case m.Leaving(a.now()), !m.DeletedAt.IsZero(), a.store.Snapshot().Get(kds.ZoneKey(zone)) == nil:
		return fmt.Errorf("%w: the zone was deleted", kds.ErrUnauthenticated)
	}
	return nil
}

// leaves returns when the deletion of a zone begins to keep it out by the time alone, by the clock of another server that
// is ahead; zero if it does not.
func (a *admission) leaves(zone string) time.Time {
	m, _, err := a.registry.Get(context.Background(), zone)
	if err != nil {
		return time.Time{} // then the pass does not hold, either
	}
	return m.LeavesAt(a.now())
}

// run ends sessions whose credentials no longer hold, until ctx ends, and warns every minute if anonymous zones are
// admitted.
func (a *admission) run(ctx context.Context, sync sessions) error {
	tick := time.NewTicker(recheckInterval)
	defer tick.Stop()
	warn := time.NewTicker(anonymousWarning)
	defer warn.Stop()
	a.warnAnonymous()
	revoked := a.tokens.Revoked()
	for {
		select {
		case <-tick.C:
			a.rechecks.tick(sync)
		case <-revoked:
			revoked = a.tokens.Revoked()
			a.revocations.Add(1)
			sync.Recheck()
		case <-warn.C:
			a.warnAnonymous()
		case <-ctx.Done():
			return nil
		}
	}
}
