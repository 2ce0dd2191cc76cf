package global

import (
	"context"
	"errors"
	"log/slog"

	"github.com/google/uuid"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
)

// incarnationOf names the store as long as it is the same one. A store that was begun anew has no name yet, and neither has one
// that was restored from a backup: both get a new one, which tells zones that what is missing was not deleted. It is among the
// secrets, sealed, so that replicas share it and nobody changes it through the API.
func incarnationOf(ctx context.Context, keeper *secrets.Keeper) (string, error) {
	name, err := keepOne(ctx, keeper, kds.IncarnationSecret, func() ([]byte, error) { return []byte(uuid.NewString()), nil })
	return string(name), err
}

// renameCopy gives the store in a data directory that is a copy another name: the copy may be old, and the other one may go on.
func renameCopy(ctx context.Context, keeper *secrets.Keeper, dir string, log *slog.Logger) error {
	copied, err := server.IsCopy(dir)
	if err != nil {
		return err
	}
	if copied {
		log.Warn("this data folder is a copy: zones take what it lacks for unknown, not for deleted, and hold what they would remove", "data_dir", dir)
		_, version, err := keeper.Get(ctx, kds.IncarnationSecret)
		if err == nil {
			_, err = keeper.Put(ctx, kds.IncarnationSecret, []byte(uuid.NewString()), version)
		}
		if err != nil && !errors.Is(err, secrets.ErrNotFound) {
			return err
		}
	}
	return server.Settle(dir)
}
