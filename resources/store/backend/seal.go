package backend

import (
	"context"
	"errors"
	"fmt"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/bolt"
)

// Sealer seals the secrets in specs. secrets.Fields implements it.
type Sealer interface {
	// Over returns s with sealing of the secrets in all puts.
	Over(s store.Store) store.Store
	// Seal returns r with its secrets sealed, or r itself if none is in plain text. old is the stored resource, or nil.
	Seal(r, old *resources.Resource) (*resources.Resource, error)
	// SealStored seals the plain-text secrets in s, and returns the number of resources that it changed.
	SealStored(ctx context.Context, s store.Store) (int, error)
}

// OpenSealed is like Open, for a store in which f seals the secrets of specs. It first seals what an older version
// stored in plain text. It replaces a file by a sealed copy in one step, because overwritten data stays in the free
// pages of a file. If the process is killed, either the old or the new file is there. Errors: those of Open and of f.
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
		c.logger().Info("store: sealed secrets that were in the clear; earlier copies and backups still contain them",
			"resources", n)
	}
	s.Store = f.Over(s.Store)
	return s, nil
}

// sealFile returns s, or the store of the new file if it replaced the file. n is the number of resources that it
// sealed.
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
