package backend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/bolt"
)

// Sealer seals the secrets in specs. It is implemented by secrets.Fields.
type Sealer interface {
	// Over returns s with all that is put into it sealed.
	Over(s store.Store) store.Store
	// SealStored seals what is in the clear in s, and says how many resources that concerned.
	SealStored(ctx context.Context, s store.Store) (int, error)
}

// OpenSealed is Open of a store in which secrets of specs are sealed by f. What an older version left in the clear is sealed first; a file
// is then written anew, because what was there before stays in its free pages. Errors: those of Open and of f.
func OpenSealed(ctx context.Context, c Config, f Sealer) (*Store, error) {
	s, err := Open(ctx, c)
	if err != nil {
		return nil, err
	}
	s.Store = f.Over(s.Store)
	n, err := f.SealStored(ctx, s)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("seal what is in the clear: %w", err), s.Close())
	}
	if n == 0 {
		return s, nil
	}
	c.logger().Info("store: sealed secrets that stood in the clear; earlier copies and backups hold them still", "resources", n)
	if s.shared != nil {
		return s, nil
	}
	rs := slices.Collect(store.All(s.Snapshot()))
	revision := s.Snapshot().Revision()
	if err := s.Close(); err != nil {
		return nil, err
	}
	fresh := c.Path + ".sealed"
	if err := errors.Join(removeIfThere(fresh), bolt.Create(fresh, revision, rs)); err != nil {
		return nil, fmt.Errorf("write the store anew: %w", err)
	}
	if err := os.Rename(fresh, c.Path); err != nil {
		return nil, err
	}
	if s, err = Open(ctx, c); err != nil {
		return nil, err
	}
	s.Store = f.Over(s.Store)
	return s, nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
