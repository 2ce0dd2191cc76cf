// Package lineage keeps, in a server's own store, what identifies the store to peers: its epoch, and its lineage, which
// is the servers that were started on it. They show peers that a store was restored, recreated or rolled back since
// they saw it. The package does not depend on what else is in the store.
package lineage

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
)

// Book holds the identity of a store, as recorded in it. Safe for concurrent use.
type Book struct {
	store  store.Store
	keeper *secrets.Keeper
	marks  marker

	mu      sync.Mutex
	name    string   // guarded by mu: the epoch
	version uint64   // guarded by mu: of the secret from which last was read
	last    *history // guarded by mu
}

// marker is implemented by stores that recognise their writes later, even though servers run concurrently: a server
// that was away while the store was rolled back does not start again, and so leaves no trace in the lineage.
type marker interface {
	// Mark identifies the last write that this server knows; empty if writes cannot be recognised.
	Mark() string
	// Recognises reports whether the store contains the write, or can no longer tell.
	Recognises(ctx context.Context, mark string) (bool, error)
}

// unmarked is the marker of a store that one server has.
type unmarked struct{}

// Mark implements marker.
func (unmarked) Mark() string { return "" }

// Recognises implements marker.
func (unmarked) Recognises(context.Context, string) (bool, error) { return true, nil }

// Open reads the identity of a store, which it creates in a new or restored store, and records that this server has
// started on it. shared means that other servers may write to it. Errors are those of secrets.Keeper.
func Open(ctx context.Context, durable store.Store, keeper *secrets.Keeper, shared bool) (*Book, error) {
	name, err := epoch(ctx, keeper)
	if err != nil {
		return nil, err
	}
	b := &Book{store: durable, keeper: keeper, marks: unmarked{}, name: name}
	if marks, ok := durable.(marker); ok {
		b.marks = marks
	}
	for {
		kept, version, err := b.kept(ctx)
		if err != nil {
			return nil, err
		}
		if kept == nil || kept.Store != name {
			kept = &history{Store: name}
		}
		kept.Shared = shared
		kept.begin()
		raw, err := kept.encode()
		if err != nil {
			return nil, err
		}
		if _, err = keeper.Put(ctx, historySecret, raw, version); err == nil {
			return b, nil
		}
		if !errors.Is(err, secrets.ErrChanged) {
			return nil, err
		}
	}
}

// EpochSecret is the secret in a server's store that holds the store's epoch. A restore from a backup omits it, so that
// the server creates a new one at its next start. A copy of the whole store keeps it.
const EpochSecret = "store-incarnation" //nolint:gosec // the name of a secret

// epoch returns the store's epoch. A new or restored store has none: it gets a new one, by which peers know that
// missing resources were not deleted. It is a sealed secret, so that replicas share it and the API cannot change it.
func epoch(ctx context.Context, keeper *secrets.Keeper) (string, error) {
	for {
		name, _, err := keeper.Get(ctx, EpochSecret)
		if !errors.Is(err, secrets.ErrNotFound) {
			return string(name), err
		}
		fresh := uuid.NewString()
		if _, err = keeper.Put(ctx, EpochSecret, []byte(fresh), 0); err == nil {
			return fresh, nil
		}
		if !errors.Is(err, secrets.ErrChanged) {
			return "", err
		}
	}
}

// Rename gives a store that has an epoch a new one, because the store is a copy, or lacks what peers have seen of it.
func Rename(ctx context.Context, keeper *secrets.Keeper) (string, error) {
	for {
		version := keeper.Version(EpochSecret)
		if version == 0 {
			return "", nil
		}
		fresh := uuid.NewString()
		if _, err := keeper.Put(ctx, EpochSecret, []byte(fresh), version); err == nil {
			return fresh, nil
		} else if !errors.Is(err, secrets.ErrChanged) {
			return "", err
		}
	}
}

// Epoch returns the name of the store.
func (b *Book) Epoch() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.name
}

// kept reads the lineage, or returns nil if there is none.
func (b *Book) kept(ctx context.Context) (*history, uint64, error) {
	raw, version, err := b.keeper.Get(ctx, historySecret)
	if errors.Is(err, secrets.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	kept, err := parse(raw, version)
	return kept, version, err
}

// behind is how long a replica waits for what a zone has seen and it lacks.
const behind = 5 * time.Second

// Compare implements kds.GlobalConfig's Compare.
func (b *Book) Compare(ctx context.Context, seen Seen) (now Seen, continues bool, err error) {
	wait, cancel := context.WithTimeout(ctx, behind)
	defer cancel()
	for {
		_, next := b.store.Changed()
		past, revision, err := b.now(ctx)
		if err != nil {
			return Seen{}, false, err
		}
		now, continues = past.point(revision), past.continues(seen, revision) && b.recognises(ctx, seen)
		now.Word = marked(now.Word, b.marks.Mark())
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

// recognises reports whether the store contains what was last seen, as far as it can tell. Without an answer, no
// session begins, so that the peer asks again.
func (b *Book) recognises(ctx context.Context, seen Seen) bool {
	mark := seen.mark()
	if mark == "" {
		return true
	}
	known, err := b.marks.Recognises(ctx, mark)
	return known || err != nil
}

// WordAt implements kds.GlobalConfig's WordAt.
func (b *Book) WordAt(revision uint64) string {
	past, _, err := b.now(context.Background()) // it calls no other server
	if err != nil {
		return "" // the peer uses the last word that it received
	}
	return marked(past.wordAt(revision), b.marks.Mark())
}

// Announce implements kds.OwnStore. A store that does not continue what the global has seen of it gets a new name.
func (b *Book) Announce(ctx context.Context, seen Seen) (name string, now Seen, renamed bool, err error) {
	now, continues, err := b.Compare(ctx, seen)
	if err != nil {
		return "", Seen{}, false, err
	}
	if !continues {
		if err := b.rename(ctx); err != nil {
			return "", Seen{}, false, err
		}
	}
	return b.Epoch(), now, !continues, nil
}

// rename gives the store a new name, under which its lineage continues.
func (b *Book) rename(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	fresh, err := Rename(ctx, b.keeper)
	if err != nil {
		return err
	}
	b.name = fresh
	for {
		kept, version, err := b.kept(ctx)
		if err != nil || kept == nil {
			return err
		}
		kept.Store = fresh
		raw, err := kept.encode()
		if err != nil {
			return err
		}
		if _, err := b.keeper.Put(ctx, historySecret, raw, version); !errors.Is(err, secrets.ErrChanged) {
			return err
		}
	}
}

// now returns the lineage, with a revision at which it was current.
func (b *Book) now(ctx context.Context) (*history, uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		revision := b.store.Snapshot().Revision()
		if b.last == nil || b.keeper.Version(historySecret) != b.version {
			kept, version, err := b.kept(ctx)
			if err != nil {
				return nil, 0, err
			}
			if kept == nil {
				return nil, 0, errors.New("the store has lost its lineage: start this server again")
			}
			b.last, b.version = kept, version
		}
		if b.version <= revision {
			return b.last, revision, nil
		}
	}
}
