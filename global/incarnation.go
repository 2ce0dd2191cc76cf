package global

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/secrets"
)

// incarnationOf names the store as long as it is the same one. A store that was begun anew has no name yet, and neither has one
// that was restored from a backup: both get a new one, which tells zones that what is missing was not deleted. It is among the
// secrets, sealed, so that replicas share it and nobody changes it through the API.
func incarnationOf(ctx context.Context, keeper *secrets.Keeper) (string, error) {
	for {
		name, _, err := keeper.Get(ctx, kds.IncarnationSecret)
		if err == nil {
			return string(name), nil
		}
		if !errors.Is(err, secrets.ErrNotFound) {
			return "", err
		}
		fresh := uuid.NewString()
		if _, err := keeper.Put(ctx, kds.IncarnationSecret, []byte(fresh), 0); !errors.Is(err, secrets.ErrChanged) {
			return fresh, err
		}
	}
}
