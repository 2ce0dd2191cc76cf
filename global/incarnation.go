package global

import (
	"context"

	"github.com/google/uuid"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/secrets"
)

// incarnationOf names the store as long as it is the same one. A store that was begun anew has no name yet, and neither has one
// that was restored from a backup: both get a new one, which tells zones that what is missing was not deleted. It is among the
// secrets, sealed, so that replicas share it and nobody changes it through the API.
func incarnationOf(ctx context.Context, keeper *secrets.Keeper) (string, error) {
	name, err := keepOne(ctx, keeper, kds.IncarnationSecret, func() ([]byte, error) { return []byte(uuid.NewString()), nil })
	return string(name), err
}
