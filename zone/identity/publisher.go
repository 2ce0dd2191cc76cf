package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// retryAfter is how long a failed publication waits, unless something changes earlier.
const retryAfter = 2 * time.Second

// Publisher keeps, for each Mesh in the zone's store, one MeshTrust with the bundle of the zone's authority: made with the
// mesh, put back when somebody changed it, removed with the mesh.
type Publisher struct {
	Store       store.Store
	Home        resources.Home
	Authorities *Authorities
	Log         *slog.Logger
}

// Run publishes until ctx ends and then returns nil. It follows the store's changes and writes only what differs.
func (p *Publisher) Run(ctx context.Context) error {
	pending := map[string]bool{} // meshes to look at
	since := p.all(pending)
	for {
		p.publish(ctx, pending)
		_, next := p.Store.Changed()
		commits, ok := p.Store.Changes(since)
		if ok && len(commits) == 0 {
			if !wait(ctx, next, len(pending) > 0) {
				return nil
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

// all marks every mesh as pending and returns the revision at which it looked.
func (p *Publisher) all(pending map[string]bool) uint64 {
	snap := p.Store.Snapshot()
	for mesh := range snap.List(store.Query{Type: resources.TypeMesh}) {
		pending[mesh.Name] = true
	}
	return snap.Revision()
}

// wait blocks until next closes, or until it is time to retry. It returns false when ctx ended.
func wait(ctx context.Context, next <-chan struct{}, retry bool) bool {
	var due <-chan time.Time
	if retry {
		timer := time.NewTimer(retryAfter)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-due:
	case <-next:
	}
	return true
}

// concerns says which mesh's MeshTrust a change calls into question.
func (p *Publisher) concerns(k resources.Key) (mesh string, ok bool) {
	switch {
	case k.Type == resources.TypeMesh:
		return k.Name, true
	case k.Type == resources.TypeSecret: // an authority came or went
		return MeshOf(k)
	case k.Type == resources.TypeMeshTrust && k == p.key(k.Mesh):
		return k.Mesh, true
	}
	return "", false
}

func (p *Publisher) key(mesh string) resources.Key {
	return resources.Key{Type: resources.TypeMeshTrust, Mesh: mesh, Name: resources.ZoneTrustName(p.Home.Zone)}
}

// publish works through pending and leaves in it what failed.
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

// Ensure makes the MeshTrust of one mesh what it should be now. It writes nothing when that is already so.
func (p *Publisher) Ensure(ctx context.Context, mesh string) error {
	snap := p.Store.Snapshot()
	old := snap.Get(p.key(mesh))
	if snap.Get(resources.Key{Type: resources.TypeMesh, Name: mesh}) == nil {
		if old == nil || !p.Home.Owns(old) {
			return nil
		}
		_, err := p.Store.Apply(ctx, store.Batch{Ops: []store.Op{{Delete: old.Key, If: store.IfRevision(old.Revision)}}})
		return err
	}
	want, err := p.trust(mesh)
	if err != nil {
		return err
	}
	condition := store.IfAbsent()
	if old != nil {
		if !p.Home.Owns(old) {
			return fmt.Errorf("%s is a copy from elsewhere, under the name that this zone publishes its identity by", old.Key)
		}
		if old.SameContent(want) {
			return nil
		}
		condition = store.IfRevision(old.Revision)
	}
	_, err = p.Store.Apply(ctx, store.Batch{Ops: []store.Op{{Put: want, If: condition}}})
	return err
}

// trust is the MeshTrust that the zone publishes in a mesh.
func (p *Publisher) trust(mesh string) (*resources.Resource, error) {
	all, err := p.Authorities.All(mesh)
	if err != nil {
		return nil, err
	}
	trust := &resources.MeshTrust{TrustDomain: all[0].TrustDomain().Name()}
	for _, one := range all {
		trust.CABundles = append(trust.CABundles, resources.CABundle{Type: resources.CABundlePEM, PEM: &resources.PEMRef{Value: string(one.PEM())}})
	}
	spec, err := resources.NewSpecOf(resources.TypeMeshTrust, trust)
	if err != nil {
		return nil, err
	}
	return p.Home.Labelled(&resources.Resource{Key: p.key(mesh), Spec: spec}), nil
}
