package global

import (
	"context"
	"log/slog"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/questions"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// zones withdraws a zone's resources when an operator deletes the zone, because its copies belong to it. Source: Kuma's
// wire format, "Receiver side".
type zones struct {
	store     store.Store
	status    store.Store
	insights  *insights
	replicas  *replicas
	sync      *kds.Global
	questions *questions.Queue
	clones    *clones
	// tombstone removes a deleted zone's credentials, if it has any.
	tombstone func(ctx context.Context, zone string) error
	log       *slog.Logger
}

// run follows the store until ctx ends. It starts with what a deletion before a crash left behind.
func (z *zones) run(ctx context.Context) error {
	seen, _ := z.store.Changed()
	gone := z.orphaned()
	for {
		for _, zone := range gone {
			if err := z.withdraw(ctx, zone); err != nil && ctx.Err() == nil {
				z.log.Error("cannot remove the resources of a deleted zone: trying again at the next start", "zone",
					zone, "error", err)
			}
		}
		_, changed := z.store.Changed()
		commits, ok := z.store.Changes(seen)
		gone = gone[:0]
		if !ok {
			seen, _ = z.store.Changed()
			gone = z.orphaned()
		}
		for _, c := range commits {
			for _, change := range c.Changes {
				if change.New == nil && change.Old.Type == resources.TypeZone {
					gone = append(gone, change.Old.Name)
				}
			}
			seen = c.Revision
		}
		if len(gone) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// orphaned lists zones that have copies here but no Zone.
func (z *zones) orphaned() []string {
	snapshot := z.store.Snapshot()
	missing := map[string]bool{}
	var names []string
	for _, d := range resources.Descriptors() {
		if !d.ZoneToGlobal {
			continue
		}
		for r := range snapshot.List(store.Query{Type: d.Type}) {
			zone := r.Zone()
			if zone == "" || missing[zone] || snapshot.Get(kds.ZoneKey(zone)) != nil {
				continue
			}
			missing[zone] = true
			names = append(names, zone)
		}
	}
	return names
}

// withdraw removes a zone's copies and status, unless the zone exists again.
func (z *zones) withdraw(ctx context.Context, zone string) error {
	snapshot := z.store.Snapshot()
	if snapshot.Get(kds.ZoneKey(zone)) != nil {
		return nil
	}
	if err := z.tombstone(ctx, zone); err != nil {
		return err
	}
	z.sync.Forget(zone)
	z.insights.forget(ctx, zone)
	z.clones.forget(zone)
	z.replicas.forget(ctx, zone)
	b := store.Batch{Check: func(now store.Snapshot) error {
		if now.Get(kds.ZoneKey(zone)) != nil {
			return store.ErrConflict
		}
		return nil
	}}
	if snapshot.Get(kds.ClaimKey(zone)) != nil {
		b.Ops = append(b.Ops, store.Op{Delete: kds.ClaimKey(zone)})
	}
	for _, key := range copiesOf(snapshot, zone) {
		b.Ops = append(b.Ops, store.Op{Delete: key})
	}
	z.withdrawStatus(ctx, zone)
	if len(b.Ops) == 0 {
		return nil
	}
	z.log.Info("zone deleted: removed its resources", "zone", zone, "resources", len(b.Ops))
	_, err := z.store.Apply(ctx, b)
	return err
}

// copiesOf lists a zone's resources.
func copiesOf(snapshot store.Snapshot, zone string) []resources.Key {
	var keys []resources.Key
	for _, d := range resources.Descriptors() {
		if !d.ZoneToGlobal {
			continue
		}
		for r := range snapshot.List(store.Query{Type: d.Type, Labels: map[string]string{resources.LabelZone: zone}}) {
			keys = append(keys, r.Key)
		}
	}
	return keys
}

// withdrawStatus removes the status of the zone's proxies.
func (z *zones) withdrawStatus(ctx context.Context, zone string) {
	var b store.Batch
	for r := range z.status.Snapshot().List(store.Query{Type: resources.TypeDataplaneInsight,
		Labels: map[string]string{resources.LabelZone: zone}}) {
		b.Ops = append(b.Ops, store.Op{Delete: r.Key})
	}
	if len(b.Ops) == 0 {
		return
	}
	if _, err := z.status.Apply(ctx, b); err != nil && ctx.Err() == nil {
		z.log.Error("cannot remove the status of a deleted zone's proxies", "zone", zone, "error", err)
	}
}
