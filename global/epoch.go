package global

import (
	"context"
	"log/slog"

	"github.com/causeway-mesh/causeway/lineage"
	"github.com/causeway-mesh/causeway/secrets"
	"github.com/causeway-mesh/causeway/server"
)

// renameCopy gives the store in a copied data directory a new epoch: the copy may be old, and the original may
// still run.
func renameCopy(ctx context.Context, keeper *secrets.Keeper, dir string, log *slog.Logger) error {
	copied, err := server.IsCopy(dir)
	if err != nil {
		return err
	}
	if copied {
		log.Warn("this data folder is a copy: zones treat what it lacks as unknown, not as deleted, and hold their deletions", "data_dir", dir)
		if _, err := lineage.Rename(ctx, keeper); err != nil {
			return err
		}
	}
	return server.Settle(dir)
}
