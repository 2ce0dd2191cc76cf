package backend

import (
	"context"
	"errors"
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/bolt"
)

// Sealer seals the secrets in specs. It is implemented by secrets.Fields.
type Sealer interface {
	// Over returns s with all that is put into it sealed.
	Over(s store.Store) store.Store
	// Seal returns r with its secrets sealed, and r itself where there is none in the clear. old is what is there now, or nil.
	Seal(r, old *resources.Resource) (*resources.Resource, error)
	// SealStored seals what is in the clear in s, and says how many resources that concerned.
	SealStored(ctx context.Context, s store.Store) (int, error)
}

// OpenSealed is Open of a store in which secrets of specs are sealed by f. What an older version left in the clear is sealed first: a file is
// replaced by a sealed copy in one step, for what is overwritten in it stays in its free pages, and a process that is killed meanwhile
// leaves either the one or the other. Errors: those of Open and of f.
func OpenSealed(ctx context.Context, c Config, f Sealer) (*Store, error) {
	s, err := Open(ctx, c)
	if err != nil {
		return nil, err
	}
	var n int
	if s.shared != nil {
		n, err = f.SealStored(ctx, s.Store)
	} else {
		s, n, err = sealFile(ctx, c, s, f)
	}
	if err != nil {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
		return nil, fmt.Errorf("seal what is in the clear: %w", err)
	}
	if n > 0 {
		c.logger().Info("store: sealed secrets that stood in the clear; earlier copies and backups hold them still", "resources", n)
	}
	s.Store = f.Over(s.Store)
	return s, nil
}

// sealFile returns s, or what was opened in its stead when the file was replaced. n is how many resources were sealed.
func sealFile(ctx context.Context, c Config, s *Store, f Sealer) (opened *Store, n int, err error) {
	snapshot := s.Snapshot()
	revision := snapshot.Revision() + 1
	var rs []*resources.Resource
	for r := range store.All(snapshot) {
		sealed, err := f.Seal(r, r)
		if err != nil {
			return s, 0, err
		}
		if sealed != r {
			sealed.Revision = revision
			n++
		}
		rs = append(rs, sealed)
	}
	if n == 0 {
		return s, 0, nil
	}
	if err := s.Close(); err != nil {
		return nil, 0, err
	}
	if err := bolt.Replace(c.Path, revision, rs); err != nil {
		return nil, 0, fmt.Errorf("write the store anew: %w", err)
	}
	opened, err = Open(ctx, c)
	return opened, n, err
}
