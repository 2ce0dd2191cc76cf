package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// retryAfter is how long a failed publication waits, unless the store changes earlier.
const retryAfter = 2 * time.Second

// Publisher maintains, for each Mesh in the zone's store, one MeshTrust for each mesh domain with the bundle of the
// zone's authorities. It creates the MeshTrust with the mesh or a MeshIdentity, restores it if it was changed, and
// removes it once no certificate that they signed is in use.
type Publisher struct {
	Store       store.Store
	Home        resources.Home
	Authorities *Authorities
	Log         *slog.Logger

	mu       sync.Mutex
	problems map[string]string // guarded by mu: what is wrong with provided authorities, by mesh domain
	files    []string          // guarded by mu: meshes whose MeshIdentities name files
}

// Run publishes until ctx ends and then returns nil. It follows the store's changes and writes only what differs.
func (p *Publisher) Run(ctx context.Context) error {
	pending := map[string]bool{} // meshes to check
	since := p.all(pending)
	for {
		p.publish(ctx, pending)
		_, next := p.Store.Changed()
		commits, ok := p.Store.Changes(since)
		if ok && len(commits) == 0 {
			watched := p.watched()
			looked, ended := wait(ctx, next, len(pending) > 0, len(watched) > 0)
			if ended {
				return nil
			}
			for _, mesh := range watched {
				if looked {
					pending[mesh] = true
				}
			}
			continue
		}
		if !ok {
			since = p.all(pending)
			continue
		}
		for _, commit := range commits {
			since = commit.Revision
			for _, change := range commit.Changes {
				if mesh, ok := p.concerns(change.Key()); ok {
					pending[mesh] = true
				}
			}
		}
	}
}

// all marks every mesh as pending and returns the revision of its snapshot.
func (p *Publisher) all(pending map[string]bool) uint64 {
	snap := p.Store.Snapshot()
	for mesh := range snap.List(store.Query{Type: resources.TypeMesh}) {
		pending[mesh.Name] = true
	}
	return snap.Revision()
}

// wait blocks until next closes, or until it is time to retry or to read files again. looked is true if it is time to
// read files; ended is true if ctx has ended.
func wait(ctx context.Context, next <-chan struct{}, retry, files bool) (looked, ended bool) {
	var due <-chan time.Time
	if retry || files {
		pause := fileLook
		if retry {
			pause = retryAfter
		}
		timer := time.NewTimer(pause)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return false, true
	case <-due:
		return files, false
	case <-next:
		return false, false
	}
}

// concerns returns the mesh whose MeshTrust a change may affect.
func (p *Publisher) concerns(k resources.Key) (mesh string, ok bool) {
	switch {
	case k.Type == resources.TypeMesh:
		return k.Name, true
	case k.Type == resources.TypeSecret: // an authority was added or removed
		meshDomain, ok := MeshDomainOf(k)
		return MeshOfDomain(meshDomain), ok
	case k.Type == resources.TypeMeshIdentity, k.Type == resources.TypeMeshTrust &&
		strings.HasPrefix(k.Name, resources.ZoneTrustName(p.Home.Zone)):
		return k.Mesh, true
	}
	return "", false
}

// publish processes pending and leaves the failed meshes in it.
func (p *Publisher) publish(ctx context.Context, pending map[string]bool) {
	for mesh := range pending {
		err := p.Ensure(ctx, mesh)
		if err == nil || ctx.Err() != nil {
			delete(pending, mesh)
			continue
		}
		if !errors.Is(err, store.ErrConflict) {
			p.Log.Error("cannot publish the identity of the mesh; trying again", "mesh", mesh, "error", err)
		}
	}
}

// Ensure brings the authorities and the MeshTrusts of one mesh up to date. It writes nothing if they already are.
func (p *Publisher) Ensure(ctx context.Context, mesh string) error {
	snap := p.Store.Snapshot()
	want := map[resources.Key]*resources.Resource{}
	if snap.Get(resources.Key{Type: resources.TypeMesh, Name: mesh}) != nil {
		if err := p.settleDomains(ctx, snap, mesh, want); err != nil {
			return err
		}
	}
	var errs []error
	for old := range snap.List(store.Query{Type: resources.TypeMeshTrust, Mesh: mesh}) {
		own := p.Home.Owns(old) && resources.IsZoneTrustName(old.Name, p.Home.Zone)
		switch next := want[old.Key]; {
		case next == nil && own:
			errs = append(errs, p.apply(ctx, store.Op{Delete: old.Key, If: store.IfRevision(old.Revision)}))
		case next != nil && !p.Home.Owns(old):
			errs = append(errs, fmt.Errorf(
				"%s is a copy from elsewhere, under the name that this zone publishes its identity by", old.Key))
		case next != nil && !old.SameContent(next):
			errs = append(errs, p.apply(ctx, store.Op{Put: next, If: store.IfRevision(old.Revision)}))
		}
		delete(want, old.Key)
	}
	for _, next := range want {
		errs = append(errs, p.apply(ctx, store.Op{Put: next, If: store.IfAbsent()}))
	}
	return errors.Join(errs...)
}

// settleDomains makes the authorities that MeshIdentities require, and collects the MeshTrusts of all mesh domains.
func (p *Publisher) settleDomains(ctx context.Context, snap store.Snapshot, mesh string,
	want map[resources.Key]*resources.Resource) error {
	asked := AssignmentsIn(snap, mesh, p.Home.Zone, nil).meshDomains()
	p.watchFiles(mesh, asked)
	for meshDomain, ask := range asked {
		if err := p.settle(ctx, meshDomain, ask); err != nil {
			return err
		}
	}
	for _, meshDomain := range p.Authorities.MeshDomains(mesh) {
		if asked[meshDomain] == nil && meshDomain != mesh {
			if err := p.Authorities.withdraw(ctx, meshDomain); err != nil {
				return err
			}
		}
		if asked[meshDomain] != nil && asked[meshDomain].unpublished {
			continue
		}
		trust, err := p.trust(meshDomain)
		if err != nil {
			return err
		}
		if trust != nil {
			want[trust.Key] = trust
		}
	}
	return nil
}

func (p *Publisher) apply(ctx context.Context, op store.Op) error {
	_, err := p.Store.Apply(ctx, store.Batch{Ops: []store.Op{op}})
	return err
}

// trust returns the MeshTrust that the zone publishes for a mesh domain; nil if the mesh domain has no authority.
func (p *Publisher) trust(meshDomain string) (*resources.Resource, error) {
	all, err := p.Authorities.All(meshDomain)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	domain := all[0].TrustDomain().Name()
	trust := &resources.MeshTrust{TrustDomain: domain}
	for _, one := range all {
		bundle := resources.CABundle{Type: resources.CABundlePEM, PEM: &resources.PEMRef{Value: string(one.PEM())}}
		if !slices.ContainsFunc(trust.CABundles, func(b resources.CABundle) bool { return b.PEM.Value == bundle.PEM.Value }) {
			trust.CABundles = append(trust.CABundles, bundle)
		}
	}
	spec, err := resources.NewSpecOf(resources.TypeMeshTrust, trust)
	if err != nil {
		return nil, err
	}
	key := TrustKey(meshDomain, p.Home.Zone)
	return p.Home.Labelled(&resources.Resource{Key: key, Spec: spec}), nil
}

// TrustKey returns the key of the MeshTrust with which a zone publishes the authorities of a mesh domain.
func TrustKey(meshDomain, zone string) resources.Key {
	name := resources.ZoneTrustName(zone)
	if _, domain, other := strings.Cut(meshDomain, ":"); other {
		name += "-" + idOf([]byte(domain))[:8]
	}
	return resources.Key{Type: resources.TypeMeshTrust, Mesh: MeshOfDomain(meshDomain), Name: name}
}
