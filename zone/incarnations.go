package zone

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/secrets"
)

// metSecret is the name of the secret, in the zone's store, with the incarnation of the global's store that the zone
// has accepted.
const metSecret = "global-store-incarnation" //nolint:gosec // the name of a secret

// incarnations implements kds.Incarnations in the zone's own store, so that a restarted or restored zone remembers what
// it has accepted.
type incarnations struct{ keeper *secrets.Keeper }

// Accepted implements kds.Incarnations.
func (i incarnations) Accepted(ctx context.Context) (string, error) {
	name, _, err := i.keeper.Get(ctx, metSecret)
	if errors.Is(err, secrets.ErrNotFound) {
		return "", nil
	}
	return string(name), err
}

// Accept implements kds.Incarnations.
func (i incarnations) Accept(ctx context.Context, incarnation string) error {
	for {
		_, err := i.keeper.Put(ctx, metSecret, []byte(incarnation), i.keeper.Version(metSecret))
		if !errors.Is(err, secrets.ErrChanged) {
			return err
		}
	}
}

// ownIncarnation returns the name of the zone's own store. It makes the name in a store that is new or restored.
func ownIncarnation(ctx context.Context, keeper *secrets.Keeper) (string, error) {
	for {
		name, _, err := keeper.Get(ctx, kds.IncarnationSecret)
		if !errors.Is(err, secrets.ErrNotFound) {
			return string(name), err
		}
		_, err = keeper.Put(ctx, kds.IncarnationSecret, []byte(uuid.NewString()), 0)
		if err != nil && !errors.Is(err, secrets.ErrChanged) {
			return "", err
		}
	}
}
