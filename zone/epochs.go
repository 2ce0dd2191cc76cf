package zone

import (
	"context"
	"errors"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/lineage"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/secrets"
)

// metSecret names the secret, in the zone's store, with the epoch of the global's store that the zone has accepted.
// seenSecret names the one with the zone's progress in that store, and beforeSecret the one with the number of copies
// from before lists that are not settled.
const (
	metSecret  = "global-store-incarnation" //nolint:gosec // the name of a secret
	seenSecret = "global-store-seen"        //nolint:gosec // the name of a secret

	beforeSecret = "global-copies-before" //nolint:gosec // the name of a secret
)

// epochs implements kds.Epochs in the zone's own store, so that a restarted or restored zone remembers what
// it has accepted.
type epochs struct{ keeper *secrets.Keeper }

// Accepted implements kds.Epochs.
func (i epochs) Accepted(ctx context.Context) (string, error) {
	name, _, err := i.keeper.Get(ctx, metSecret)
	if errors.Is(err, secrets.ErrNotFound) {
		return "", nil
	}
	return string(name), err
}

// Accept implements kds.Epochs.
func (i epochs) Accept(ctx context.Context, epoch string) error {
	for {
		_, err := i.keeper.Put(ctx, metSecret, []byte(epoch), i.keeper.Version(metSecret))
		if !errors.Is(err, secrets.ErrChanged) {
			return err
		}
	}
}

// Seen implements kds.Epochs.
func (i epochs) Seen(ctx context.Context) (lineage.Seen, error) {
	raw, _, err := i.keeper.Get(ctx, seenSecret)
	if errors.Is(err, secrets.ErrNotFound) {
		return lineage.Seen{}, nil
	}
	return lineage.ParseSeen(string(raw)), err
}

// See implements kds.Epochs.
func (i epochs) See(_ context.Context, seen lineage.Seen) ([]store.Op, error) {
	op, err := i.keeper.Replacing(seenSecret, []byte(seen.String()))
	return []store.Op{op}, err
}

// Before implements kds.Epochs.
func (i epochs) Before(ctx context.Context) (kds.Before, error) {
	raw, _, err := i.keeper.Get(ctx, beforeSecret)
	if errors.Is(err, secrets.ErrNotFound) {
		return kds.Before{}, nil
	}
	if err != nil {
		return nil, err
	}
	return kds.ParseBefore(string(raw))
}

// NoteBefore implements kds.Epochs.
func (i epochs) NoteBefore(_ context.Context, copies kds.Before) ([]store.Op, error) {
	op, err := i.keeper.Replacing(beforeSecret, []byte(copies.String()))
	return []store.Op{op}, err
}
