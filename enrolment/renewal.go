package enrolment

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/enrolment/enrolmentpb"
	"github.com/causeway-mesh/causeway/panics"
)

const (
	renewTimeout = time.Minute
	// renewPause is the pause after the first failed renewal. Each pause is twice the previous, up to
	// longestRenewPause.
	renewPause        = time.Second
	longestRenewPause = 10 * time.Minute
	// longestLook bounds a wait, because the clock may be set meanwhile.
	longestLook = 10 * time.Minute
)

// Renewal renews a zone's credential over its sessions with the global: at half of its life, or when the global advises
// it. The session continues.
type Renewal struct {
	// Holder keeps the credential of Zone.
	Holder *Holder
	Zone   string
	Now    func() time.Time
	// Questions is called when the global says that questions wait for the zone; it must not block. Nil for a zone that
	// answers none.
	Questions func()
	// Panics recovers panics; with nil they end the process.
	Panics *panics.Guard
	Log    *slog.Logger
}

// Run implements kds.ZoneConfig.Beside.
func (r *Renewal) Run(ctx context.Context, conn grpc.ClientConnInterface) error {
	service := Membership{Conn: conn}
	if err := r.confirm(ctx, service); err != nil {
		return r.without(ctx, err)
	}
	advised := make(chan struct{}, 1) // holds one signal: the global advises to renew
	followed := make(chan error, 1)
	follow, stop := context.WithCancel(ctx)
	go func() {
		followed <- r.Panics.Do("membership", func() error {
			return service.Follow(follow, func(a *enrolmentpb.Advice) {
				if a.GetQuestions() && r.Questions != nil {
					r.Questions()
				}
				if !a.GetRenew() {
					return
				}
				select {
				case advised <- struct{}{}:
				default:
				}
			})
		})
	}()
	err := r.keep(ctx, service, advised, followed)
	stop()
	if err == nil {
		ended := <-followed
		r.Log.Debug("the global is no longer followed", "zone", r.Zone, "error", ended)
	}
	return r.without(ctx, err)
}

// without waits for the end of the session if the global lacks the service. It returns other errors, which end the
// session.
func (r *Renewal) without(ctx context.Context, err error) error {
	if err != nil && status.Code(err) != codes.Unimplemented {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// keep renews the credential whenever it is due. It returns nil when ctx ends, or else the reason why the stream of
// advice ended.
func (r *Renewal) keep(ctx context.Context, service Membership, advised <-chan struct{}, followed <-chan error) error {
	due, pause := false, renewPause
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-advised:
			due = true
		case <-timer.C:
		case err := <-followed:
			return err
		case <-ctx.Done():
			return nil
		}
		wait := min(r.Holder.current.Load().due(r.Now()), longestLook)
		if due || wait <= 0 {
			if err := r.renew(ctx, service); err != nil {
				r.Log.Warn("the zone's credential was not renewed: trying again", "zone", r.Zone, "error", err)
				due, wait, pause = true, pause, min(2*pause, longestRenewPause)
			} else {
				due, wait, pause = false, 0, renewPause
			}
		}
		timer.Reset(max(wait, renewPause))
	}
}

func (r *Renewal) renew(ctx context.Context, service Membership) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	next, csr, err := r.Holder.request(r.Zone, nil)
	if err != nil {
		return err
	}
	credential, err := service.Renew(ctx, &enrolmentpb.RenewRequest{Csr: csr})
	if err != nil {
		return err
	}
	before := r.Holder.current.Load()
	m, err := r.Holder.keep(next, origin{before.Addresses, before.Joined}, credential, r.Now())
	if err != nil {
		return err
	}
	r.Log.Info("the zone's credential was renewed", "zone", r.Zone, "expires", m.Expires)
	return r.confirm(ctx, service)
}

// confirm reports to the global which certificate is on this zone's disk.
func (r *Renewal) confirm(ctx context.Context, service Membership) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	return service.Confirm(ctx, &enrolmentpb.ConfirmRequest{Serial: r.Holder.current.Load().serial()})
}
