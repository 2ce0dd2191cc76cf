package global

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
)

// lineage is the history of the store, as the store has it. Safe for concurrent use.
type lineage struct {
	store  store.Store
	keeper *secrets.Keeper

	mu      sync.Mutex
	version uint64       // guarded by mu: that of the secret from which last was read
	last    *kds.Lineage // guarded by mu
}

// beginLineage records in the store that this server has started on it. shared says that other servers may write it.
func beginLineage(ctx context.Context, durable store.Store, keeper *secrets.Keeper, incarnation string,
	shared bool) (*lineage, error) {
	for {
		kept, version, err := keptLineage(ctx, keeper)
		if err != nil {
			return nil, err
		}
		if kept == nil || kept.Store != incarnation {
			kept = &kds.Lineage{Store: incarnation}
		}
		kept.Shared = shared
		kept.Begin()
		raw, err := kept.Encode()
		if err != nil {
			return nil, err
		}
		if _, err = keeper.Put(ctx, kds.LineageSecret, raw, version); err == nil {
			return &lineage{store: durable, keeper: keeper}, nil
		}
		if !errors.Is(err, secrets.ErrChanged) {
			return nil, err
		}
	}
}

// keptLineage reads the lineage; nil if there is none.
func keptLineage(ctx context.Context, keeper *secrets.Keeper) (*kds.Lineage, uint64, error) {
	raw, version, err := keeper.Get(ctx, kds.LineageSecret)
	if errors.Is(err, secrets.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	kept, err := kds.ParseLineage(raw, version)
	return kept, version, err
}

// behind is how long a replica that has less than a zone has seen waits for the rest.
const behind = 5 * time.Second

// compare implements kds.GlobalConfig's Compare.
func (l *lineage) compare(ctx context.Context, seen kds.Seen) (now kds.Seen, continues bool, err error) {
	wait, cancel := context.WithTimeout(ctx, behind)
	defer cancel()
	for {
		_, next := l.store.Changed()
		past, revision, err := l.now(ctx)
		if err != nil {
			return kds.Seen{}, false, err
		}
		now, continues = past.Point(revision), past.Continues(seen, revision)
		if continues || !past.Shared || seen.Most <= revision {
			return now, continues, nil
		}
		select {
		case <-next:
		case <-wait.Done():
			return now, continues, ctx.Err()
		}
	}
}

// now returns the lineage, with a revision at which it was current.
func (l *lineage) now(ctx context.Context) (*kds.Lineage, uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		revision := l.store.Snapshot().Revision()
		if l.last == nil || l.keeper.Version(kds.LineageSecret) != l.version {
			kept, version, err := keptLineage(ctx, l.keeper)
			if err != nil {
				return nil, 0, err
			}
			if kept == nil {
				return nil, 0, errors.New("the store has lost its lineage: start this server again")
			}
			l.last, l.version = kept, version
		}
		if l.version <= revision {
			return l.last, revision, nil
		}
	}
}
