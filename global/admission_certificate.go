package global

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/causeway-mesh/causeway/enrolment"
	"github.com/causeway-mesh/causeway/kds"
)

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

// Until implements kds.Pass.
func (p *certificatePass) Until() time.Time {
	held, err := p.connection.now()
	if err != nil {
		return time.Time{} // it does not hold, either
	}
	return first(held.Expires, p.admission.leaves(held.Zone))
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
	if err := a.checkAdmitted(m, held.Zone); err != nil {
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
