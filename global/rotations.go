package global

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/api"
	"github.com/causeway-mesh/causeway/enrolment"
)

// retireInterval is how often authorities that no longer sign are checked for retirement.
const retireInterval = 2 * time.Second

// rotations tracks which authority signs for zones and notifies those that wait. It retires the others once no zone
// depends on them.
type rotations struct {
	authority *enrolment.Authority
	registry  *enrolment.Registry
	audit     auditor
	log       *slog.Logger
	// ended is closed when the server stops.
	ended chan struct{}

	mu      sync.Mutex
	signing string        // guarded by mu
	changed chan struct{} // guarded by mu; closed when signing changes
}

func newRotations(ctx context.Context, authority *enrolment.Authority, registry *enrolment.Registry, audit auditor,
	log *slog.Logger) (*rotations, error) {
	signing, err := authority.Signing(ctx)
	return &rotations{
		authority: authority, registry: registry, audit: audit, log: log, ended: make(chan struct{}), signing: signing,
		changed: make(chan struct{}),
	}, err
}

// now returns the signing authority, and a channel that is closed when it changes.
func (r *rotations) now() (signing string, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.signing, r.changed
}

// look detects a rotation, including one by another global with the same store.
func (r *rotations) look(ctx context.Context) {
	signing, err := r.authority.Signing(ctx)
	if err != nil {
		r.log.Error("cannot read the zone CA", "error", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if signing == r.signing {
		return
	}
	r.signing = signing
	close(r.changed)
	r.changed = make(chan struct{})
}

// run calls look until ctx ends. leads reports whether this replica retires authorities.
func (r *rotations) run(ctx context.Context, leads func() bool) error {
	defer close(r.ended)
	look, retire := time.NewTicker(recheckInterval), time.NewTicker(retireInterval)
	defer look.Stop()
	defer retire.Stop()
	for {
		select {
		case <-look.C:
			r.look(ctx)
		case <-retire.C:
			if !leads() {
				continue
			}
			if err := r.retireUnused(ctx); err != nil && ctx.Err() == nil {
				r.log.Error("cannot retire a zone CA that no zone depends on", "error", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// uses counts, by authority, the zones that could not connect without it: it signed their newest certificate.
func (r *rotations) uses(ctx context.Context) (map[string]int, error) {
	uses := map[string]int{}
	for _, zone := range r.registry.Zones() {
		m, _, err := r.registry.Get(ctx, zone)
		if err != nil {
			return nil, err
		}
		if m == nil {
			continue
		}
		for authority := range m.DependsOn(r.registry.Forget()) {
			uses[authority]++
		}
	}
	return uses, nil
}

func (r *rotations) retireUnused(ctx context.Context) error {
	ring, _, err := r.authority.Current(ctx)
	if err != nil || len(ring) < 2 {
		return err
	}
	uses, err := r.uses(ctx)
	if err != nil {
		return err
	}
	for _, ca := range ring[:len(ring)-1] {
		if uses[ca.ID] > 0 {
			continue
		}
		if err := r.retire(ctx, ca.ID, false); err != nil {
			return err
		}
	}
	return nil
}

// retire stops accepting an authority. It needs force if zones depend on the authority.
func (r *rotations) retire(ctx context.Context, id string, force bool) error {
	uses, err := r.uses(ctx)
	if err != nil {
		return err
	}
	if n := uses[id]; n > 0 && !force {
		return fmt.Errorf("%w: %d zones would be locked out, since they have not renewed their certificates yet; wait for them, or give force", enrolment.ErrKeyring, n)
	}
	event := auditEvent{Verb: doRetire, Details: map[string]string{"key": id}}
	if err := r.audit.begin(ctx, &event); err != nil {
		return err
	}
	event.Err = r.authority.Retire(ctx, id)
	_ = r.audit.record(ctx, event) // the action is done; the log records it when it can
	return event.Err
}

// rotate creates an authority. Connected zones renew at once. The old authority is retired after the last of them.
func (r *rotations) rotate(ctx context.Context) (id string, err error) {
	id, err = r.authority.Rotate(ctx)
	if err == nil {
		r.look(ctx)
	}
	return id, err
}

// keys lists the authorities, the signing one first.
func (r *rotations) keys(ctx context.Context) ([]api.SigningKey, error) {
	ring, _, err := r.authority.Current(ctx)
	if err != nil {
		return nil, err
	}
	uses, err := r.uses(ctx)
	if err != nil {
		return nil, err
	}
	var out []api.SigningKey
	for i, ca := range slices.Backward(ring) {
		state := keyAccepted
		if i == len(ring)-1 {
			state = keySigning
		}
		n, expires := uses[ca.ID], ca.Cert.NotAfter.UTC()
		out = append(out, api.SigningKey{
			Purpose: enrolment.AuthoritySecret, ID: ca.ID, State: state, Algorithm: "ECDSA P-256",
			Created: ca.Created.UTC(), Expires: &expires, Uses: &n,
		})
	}
	return out, nil
}
