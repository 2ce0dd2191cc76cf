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

// incarnationOf returns the store's incarnation. A new store has none yet, nor has one that was restored from a backup:
// both get a new one, by which zones know that missing resources were not deleted. It is a sealed secret, so that
// replicas share it and the API cannot change it.
func incarnationOf(ctx context.Context, keeper *secrets.Keeper) (string, error) {
	name, err := keepOne(ctx, keeper, kds.IncarnationSecret,
		func() ([]byte, error) { return []byte(uuid.NewString()), nil })
	return string(name), err
}

// renameCopy gives the store in a copied data directory a new incarnation: the copy may be old, and the original may
// still run.
func renameCopy(ctx context.Context, keeper *secrets.Keeper, dir string, log *slog.Logger) error {
	copied, err := server.IsCopy(dir)
	if err != nil {
		return err
	}
	if copied {
		log.Warn("this data folder is a copy: zones treat what it lacks as unknown, not as deleted, and hold their deletions", "data_dir", dir)
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
