package global

import (
	"context"
	"fmt"
	"time"

	"github.com/causeway-mesh/causeway/kds"
)

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

// Until implements kds.Pass.
func (p *anonymousPass) Until() time.Time { return p.admission.leaves(p.zone) }

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
	return fmt.Errorf("%w: this zone has a credential: connect with it", kds.ErrUnauthenticated)
}

func (a *admission) warnAnonymous() {
	if a.allowAnonymous {
		a.log.Warn("zones are admitted without credentials: anybody who reaches the KDS port can impersonate any zone that has not joined; start without --kds-insecure-anonymous")
	}
}
