package identity

import (
	"bytes"
	"cmp"
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
	// maxEdits bounds how often a change of authorities is retried because another server wrote first.
	maxEdits = 8
	// rotationLook is the interval at which a rotation in progress is checked.
	rotationLook = 2 * time.Second
)

// edit changes the authorities of a mesh domain with compare-and-swap.
func (a *Authorities) edit(ctx context.Context, meshDomain string, change func(*keptAuthorities, *held) error) error {
	if _, err := a.hold(ctx, meshDomain); err != nil {
		return err
	}
	domain, err := domainOf(meshDomain, a.cfg.Zone)
	if err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		kept, h, err := a.read(ctx, meshDomain, domain)
		if errors.Is(err, secrets.ErrNotFound) {
			kept, h, err = &keptAuthorities{}, &held{}, nil
		}
		if err != nil {
			return fmt.Errorf("%w: mesh %s: %w", ErrAuthority, meshDomain, err)
		}
		before := slices.Clone(kept.Authorities)
		refusal := change(kept, h)
		if refusal != nil || slices.EqualFunc(before, kept.Authorities, same) {
			err := a.cfg.Keeper.Confirm(ctx, secretName(meshDomain), h.version)
			if errors.Is(err, secrets.ErrChanged) && attempt < maxEdits {
				continue
			}
			return cmp.Or(err, refusal)
		}
		err = a.write(ctx, meshDomain, kept, h.version)
		if !errors.Is(err, secrets.ErrChanged) || attempt == maxEdits {
			return err
		}
	}
}

// same reports whether x and y are one authority in one state.
func same(x, y keptAuthority) bool {
	return x.State == y.State && bytes.Equal(x.Certificate, y.Certificate)
}

// Prepare makes the next authority of a mesh domain and returns its id. The authority is published, and does not sign
// before Promote. Errors: ErrRotation if a rotation is in progress.
func (a *Authorities) Prepare(ctx context.Context, meshDomain string) (id string, err error) {
	domain, err := domainOf(meshDomain, a.cfg.Zone)
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
	return made.id, a.addNext(ctx, meshDomain, made.id, next)
}

// addNext stores an authority as the next to sign.
func (a *Authorities) addNext(ctx context.Context, meshDomain, id string, next keptAuthority) error {
	return a.edit(ctx, meshDomain, func(kept *keptAuthorities, h *held) error {
		at := indexOf(h, id)
		if at >= 0 && h.all[at].state != Accepted {
			return nil
		}
		for _, one := range h.all {
			if one.state == Next {
				return fmt.Errorf("%w: %s signs next: wait for it, or retire it", ErrRotation, one.id)
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

// Promote makes the next authority sign. The previous signing authority becomes accepted. unaware names those that may
// not know the authority yet; they are stored with it. Errors: ErrRotation.
func (a *Authorities) Promote(ctx context.Context, meshDomain, id string, unaware ...string) error {
	return a.edit(ctx, meshDomain, func(kept *keptAuthorities, h *held) error {
		at := indexOf(h, id)
		if at < 0 || kept.Authorities[at].State != Next {
			return fmt.Errorf("%w: %s is not the next authority of mesh %s", ErrRotation, id, meshDomain)
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

// Retire removes an authority that does not sign; peers then refuse certificates that it signed. Unless forced, it
// fails while such certificates may be in use. Errors: ErrRotation, ErrNoAuthority.
func (a *Authorities) Retire(ctx context.Context, meshDomain, id string, force bool) error {
	return a.edit(ctx, meshDomain, func(kept *keptAuthorities, h *held) error {
		at := indexOf(h, id)
		switch {
		case at < 0:
			return fmt.Errorf("%w: mesh %s has none of the id %q", ErrNoAuthority, meshDomain, id)
		case h.all[at].state == Signing:
			return fmt.Errorf("%w: %s signs: rotate first", ErrRotation, id)
		case h.all[at].state == Accepted && !force && !a.unused(h.all[at]):
			return fmt.Errorf("%w: what %s has signed may be in use until %s", ErrRotation, id,
				h.all[at].since.Add(Lifetime+skew).Format(time.RFC3339))
		}
		kept.Authorities = slices.Delete(kept.Authorities, at, at+1)
		return nil
	})
}

// want ensures that a mesh domain other than a mesh's own has a signing or a next authority. It writes nothing if it
// has one.
func (a *Authorities) want(ctx context.Context, meshDomain string) error {
	all, err := a.All(meshDomain)
	if err != nil || slices.ContainsFunc(all, func(one *Authority) bool { return one.state != Accepted }) {
		return err
	}
	_, err = a.Prepare(ctx, meshDomain)
	if errors.Is(err, ErrRotation) {
		return nil // another server of the same store was faster
	}
	return err
}

// withdraw stops signing in a mesh domain that no MeshIdentity requires. Issued certificates stay valid until they
// expire.
func (a *Authorities) withdraw(ctx context.Context, meshDomain string) error {
	all, err := a.All(meshDomain)
	if err != nil || !slices.ContainsFunc(all, func(one *Authority) bool { return one.state != Accepted }) {
		return err
	}
	return a.edit(ctx, meshDomain, func(kept *keptAuthorities, _ *held) error {
		kept.Authorities = slices.DeleteFunc(kept.Authorities, func(k keptAuthority) bool { return k.State == Next })
		for i := range kept.Authorities {
			if kept.Authorities[i].State == Signing {
				kept.Authorities[i].State, kept.Authorities[i].Since = Accepted, a.cfg.Now().UTC()
			}
		}
		return nil
	})
}

// unused reports whether all certificates that an accepted authority signed have expired.
func (a *Authorities) unused(one *Authority) bool {
	return one.state == Accepted && a.forget().After(one.since.Add(Lifetime+skew))
}

func indexOf(h *held, id string) int {
	return slices.IndexFunc(h.all, func(one *Authority) bool { return one.id == id })
}

// Unaware names, in readable form, those that do not trust the current authorities of a mesh domain.
type Unaware struct {
	// Waited are waited for without a limit: connected zones and this zone's proxies.
	Waited []string
	// Away are waited for up to Rotation.Overlap: zones that are not connected.
	Away []string
}

// Rotation finishes what Prepare begins. The next authority signs once every peer knows it. An accepted authority is
// retired when all certificates that it signed have expired.
type Rotation struct {
	Store       store.Reader
	Authorities *Authorities
	// Overlap is how long the next authority waits for zones that are not connected (Unaware.Away).
	Overlap time.Duration
	// Known returns those that have not acknowledged the authorities of a mesh domain as currently published.
	Known func(ctx context.Context, meshDomain string) Unaware
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	Log *slog.Logger
}

// Run works until ctx ends and then returns nil. It waits for a change of the store while no rotation is in progress.
func (r *Rotation) Run(ctx context.Context) error {
	if r.Now == nil {
		r.Now = time.Now
	}
	for {
		snap := r.Store.Snapshot()
		pending := false
		for mesh := range snap.List(store.Query{Type: resources.TypeMesh}) {
			for _, meshDomain := range r.Authorities.MeshDomains(mesh.Name) {
				pending = r.look(ctx, meshDomain) || pending
			}
		}
		if !r.wait(ctx, snap.Revision(), pending) {
			return nil
		}
	}
}

// wait blocks until a mesh or a secret has changed since the revision, or until a rotation in progress is due for a
// check. It returns false when ctx ends.
func (r *Rotation) wait(ctx context.Context, since uint64, pending bool) bool {
	if pending { // a busy store must not keep the loop busy
		timer := time.NewTimer(rotationLook)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		}
	}
	for {
		_, next := r.Store.Changed()
		commits, ok := r.Store.Changes(since)
		if !ok || slices.ContainsFunc(commits, changesAuthorities) {
			return true
		}
		if len(commits) > 0 {
			since = commits[len(commits)-1].Revision
		}
		select {
		case <-ctx.Done():
			return false
		case <-next:
		}
	}
}

// changesAuthorities reports whether a commit may have brought a mesh domain or changed its authorities, which are secrets.
func changesAuthorities(c *store.Commit) bool {
	return slices.ContainsFunc(c.Changes, func(change store.Change) bool {
		t := change.Key().Type
		return t == resources.TypeMesh || t == resources.TypeSecret
	})
}

// look takes the next step for a mesh domain, and reports whether more steps follow.
func (r *Rotation) look(ctx context.Context, meshDomain string) (pending bool) {
	all, err := r.Authorities.All(meshDomain)
	if err != nil {
		return false // the publisher logs it
	}
	for _, one := range all {
		switch {
		case one.state == Signing:
			continue
		case one.state == Next:
			unaware := r.Known(ctx, meshDomain)
			if len(unaware.Waited) > 0 || len(unaware.Away) > 0 && r.Now().Sub(one.since) < r.Overlap {
				break
			}
			err = r.Authorities.Promote(ctx, meshDomain, one.id, unaware.Away...)
			r.Log.Info("a new authority signs the identities of the mesh", "mesh", meshDomain, "authority", one.id,
				"unaware", unaware.Away, "error", err)
		case one.state == Accepted && r.Authorities.unused(one):
			err = r.Authorities.Retire(ctx, meshDomain, one.id, false)
			r.Log.Info("retired an authority of the mesh: all certificates that it signed have expired", "mesh", meshDomain,
				"authority", one.id, "error", err)
		}
		pending = true
	}
	return pending
}
