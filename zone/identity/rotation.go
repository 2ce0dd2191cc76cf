package identity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
)

const (
	// maxEdits bounds how often a change of authorities starts over because another server was faster.
	maxEdits = 8
	// rotationLook is how often a rotation under way is looked at.
	rotationLook = 2 * time.Second
)

// edit changes the authorities of a realm by compare-and-swap.
func (a *Authorities) edit(ctx context.Context, realm string, change func(*keptAuthorities, *held) error) error {
	if _, err := a.hold(ctx, realm); err != nil {
		return err
	}
	domain, err := domainOf(realm, a.cfg.Zone)
	if err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		kept, h, err := a.read(ctx, realm, domain)
		if errors.Is(err, secrets.ErrNotFound) {
			kept, h, err = &keptAuthorities{}, &held{}, nil
		}
		if err != nil {
			return fmt.Errorf("%w: mesh %s: %w", ErrAuthority, realm, err)
		}
		before := slices.Clone(kept.Authorities)
		if err := change(kept, h); err != nil || slices.EqualFunc(before, kept.Authorities, same) {
			return err
		}
		err = a.write(ctx, realm, kept, h.version)
		if !errors.Is(err, secrets.ErrChanged) || attempt == maxEdits {
			return err
		}
	}
}

// same reports whether two are one authority in one state.
func same(x, y keptAuthority) bool {
	return x.State == y.State && bytes.Equal(x.Certificate, y.Certificate)
}

// Prepare makes the next authority of a realm and returns its id. It is published, and signs nothing before Promote. Errors:
// ErrRotation where one is under way.
func (a *Authorities) Prepare(ctx context.Context, realm string) (id string, err error) {
	domain, err := domainOf(realm, a.cfg.Zone)
	if err != nil {
		return "", err
	}
	made, err := newAuthority(domain, a.cfg.Now())
	if err != nil {
		return "", err
	}
	next, err := keep(made, Next, a.cfg.Now())
	if err != nil {
		return "", err
	}
	return made.id, a.addNext(ctx, realm, made.id, next)
}

// addNext keeps an authority that is to sign next.
func (a *Authorities) addNext(ctx context.Context, realm, id string, next keptAuthority) error {
	return a.edit(ctx, realm, func(kept *keptAuthorities, h *held) error {
		at := indexOf(h, id)
		if at >= 0 && h.all[at].state != Accepted {
			return nil
		}
		for _, one := range h.all {
			if one.state == Next {
				return fmt.Errorf("%w: %s is to sign next: wait for it, or retire it", ErrRotation, one.id)
			}
		}
		if at >= 0 {
			kept.Authorities = slices.Delete(kept.Authorities, at, at+1)
		}
		if len(kept.Authorities) >= maxAuthorities {
			return fmt.Errorf("%w: there are %d authorities: retire old ones first", ErrRotation, len(kept.Authorities))
		}
		kept.Authorities = append(kept.Authorities, next)
		return nil
	})
}

// Promote lets the next authority sign; the one that did is accepted from now on. Who may not know it yet is remembered. Errors:
// ErrRotation.
func (a *Authorities) Promote(ctx context.Context, realm, id string, unaware ...string) error {
	return a.edit(ctx, realm, func(kept *keptAuthorities, h *held) error {
		at := indexOf(h, id)
		if at < 0 || kept.Authorities[at].State != Next {
			return fmt.Errorf("%w: %s is not the next authority of mesh %s", ErrRotation, id, realm)
		}
		now := a.cfg.Now().UTC()
		for i := range kept.Authorities {
			if kept.Authorities[i].State == Signing {
				kept.Authorities[i].State, kept.Authorities[i].Since = Accepted, now
			}
		}
		kept.Authorities[at].State, kept.Authorities[at].Since, kept.Authorities[at].Unaware = Signing, now, unaware
		return nil
	})
}

// Retire removes an authority that does not sign: what it has signed is refused from now on. Unless forced, not while that may be
// in use. Errors: ErrRotation, ErrNoAuthority.
func (a *Authorities) Retire(ctx context.Context, realm, id string, force bool) error {
	return a.edit(ctx, realm, func(kept *keptAuthorities, h *held) error {
		at := indexOf(h, id)
		switch {
		case at < 0:
			return fmt.Errorf("%w: mesh %s has none of the id %q", ErrNoAuthority, realm, id)
		case h.all[at].state == Signing:
			return fmt.Errorf("%w: %s signs: rotate first", ErrRotation, id)
		case h.all[at].state == Accepted && !force && !a.unused(h.all[at]):
			return fmt.Errorf("%w: what %s has signed may be in use until %s", ErrRotation, id, h.all[at].since.Add(Lifetime+skew).Format(time.RFC3339))
		}
		kept.Authorities = slices.Delete(kept.Authorities, at, at+1)
		return nil
	})
}

// want sees to it that a realm other than a mesh's own has an authority that signs, or is to. It writes nothing when it has.
func (a *Authorities) want(ctx context.Context, realm string) error {
	all, err := a.All(realm)
	if err != nil || slices.ContainsFunc(all, func(one *Authority) bool { return one.state != Accepted }) {
		return err
	}
	_, err = a.Prepare(ctx, realm)
	if errors.Is(err, ErrRotation) {
		return nil // another server of the same store was faster
	}
	return err
}

// withdraw has nobody sign in a realm that no MeshIdentity asks for: what was signed is good until it expires.
func (a *Authorities) withdraw(ctx context.Context, realm string) error {
	all, err := a.All(realm)
	if err != nil || !slices.ContainsFunc(all, func(one *Authority) bool { return one.state != Accepted }) {
		return err
	}
	return a.edit(ctx, realm, func(kept *keptAuthorities, _ *held) error {
		kept.Authorities = slices.DeleteFunc(kept.Authorities, func(k keptAuthority) bool { return k.State == Next })
		for i := range kept.Authorities {
			if kept.Authorities[i].State == Signing {
				kept.Authorities[i].State, kept.Authorities[i].Since = Accepted, a.cfg.Now().UTC()
			}
		}
		return nil
	})
}

// unused: all that it signed has expired.
func (a *Authorities) unused(one *Authority) bool {
	return one.state == Accepted && a.forget().After(one.since.Add(Lifetime+skew))
}

func indexOf(h *held, id string) int {
	return slices.IndexFunc(h.all, func(one *Authority) bool { return one.id == id })
}

// Unaware are those who do not believe what a realm publishes now, in words for people.
type Unaware struct {
	// Waited are waited for without an end: connected zones, this zone's proxies.
	Waited []string
	// Away are waited for at most for Rotation.Overlap: zones that are not connected.
	Away []string
}

// Rotation finishes what Prepare begins: the next authority signs once everybody knows it, and one that no longer signs is
// retired when all that it has signed has expired.
type Rotation struct {
	Store       store.Reader
	Authorities *Authorities
	// Overlap is how long the next authority waits for those who are away: Unaware.Away.
	Overlap time.Duration
	// Known tells who is still to acknowledge the authorities of a realm, as they are published now.
	Known func(ctx context.Context, realm string) Unaware
	// Now is the clock; time.Now when nil.
	Now func() time.Time
	Log *slog.Logger
}

// Run works until ctx ends and then returns nil. Nothing is looked at while nothing rotates.
func (r *Rotation) Run(ctx context.Context) error {
	if r.Now == nil {
		r.Now = time.Now
	}
	for {
		_, next := r.Store.Changed()
		pending := false
		for mesh := range r.Store.Snapshot().List(store.Query{Type: resources.TypeMesh}) {
			for _, realm := range r.Authorities.Realms(mesh.Name) {
				pending = r.look(ctx, realm) || pending
			}
		}
		if !r.wait(ctx, next, pending) {
			return nil
		}
	}
}

// wait blocks until something changes, or until a rotation under way is to be looked at again.
func (r *Rotation) wait(ctx context.Context, next <-chan struct{}, pending bool) bool {
	timer := time.NewTimer(rotationLook)
	defer timer.Stop()
	if pending {
		next = nil // a busy store must not make this busy
	} else {
		timer.Stop()
	}
	select {
	case <-ctx.Done():
		return false
	case <-next:
	case <-timer.C:
	}
	return true
}

// look takes the next step of a realm, and reports whether there are more to come.
func (r *Rotation) look(ctx context.Context, realm string) (pending bool) {
	all, err := r.Authorities.All(realm)
	if err != nil {
		return false // the publisher says so
	}
	for _, one := range all {
		switch {
		case one.state == Signing:
			continue
		case one.state == Next:
			unaware := r.Known(ctx, realm)
			if len(unaware.Waited) > 0 || len(unaware.Away) > 0 && r.Now().Sub(one.since) < r.Overlap {
				break
			}
			err = r.Authorities.Promote(ctx, realm, one.id, unaware.Away...)
			r.Log.Info("a new authority signs the identities of the mesh", "mesh", realm, "authority", one.id, "unaware", unaware.Away, "error", err)
		case one.state == Accepted && r.Authorities.unused(one):
			err = r.Authorities.Retire(ctx, realm, one.id, false)
			r.Log.Info("an authority of the mesh is no longer believed: all that it signed has expired", "mesh", realm, "authority", one.id, "error", err)
		}
		pending = true
	}
	return pending
}
