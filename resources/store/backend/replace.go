package backend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/store/bolt"
	"github.com/causeway-mesh/causeway/resources/store/etcd"
)

// ErrNotEmpty reports that a store exists and the caller did not allow to replace it.
var ErrNotEmpty = errors.New("there is a store already")

// Replace makes a store hold exactly rs, at a revision. No server may have a file open. If a store exists, Replace
// returns ErrNotEmpty unless overwrite is set. With overwrite it moves a file to the path that it returns, and deletes
// the contents of etcd. Errors: those of Validate, ErrNotEmpty, store.ErrUnavailable, bolt.ErrInUse, the operating
// system's.
func Replace(ctx context.Context, c Config, revision uint64, rs []*resources.Resource, overwrite bool) (aside string,
	err error) {
	if err := c.Validate(); err != nil {
		return "", err
	}
	if c.Kind != Etcd {
		return replaceFile(ctx, c, revision, rs, overwrite)
	}
	opened, err := Open(ctx, c)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	if n := count(opened); n > 0 && !overwrite {
		return "", fmt.Errorf("%s in etcd has %d resources: %w", c.Prefix, n, ErrNotEmpty)
	}
	// Revisions only grow: otherwise servers that follow would not see the change.
	return "", opened.Store.(*etcd.Store).Replace(ctx, max(revision, opened.Snapshot().Revision()+1), rs)
}

func count(r store.Reader) int {
	n := 0
	for range store.All(r.Snapshot()) {
		n++
	}
	return n
}

func replaceFile(ctx context.Context, c Config, revision uint64, rs []*resources.Resource,
	overwrite bool) (aside string, err error) {
	switch _, err := os.Lstat(c.Path); {
	case errors.Is(err, os.ErrNotExist):
		return "", bolt.Create(c.Path, revision, rs)
	case err != nil:
		return "", err
	case !overwrite:
		return "", fmt.Errorf("%s: %w", c.Path, ErrNotEmpty)
	}
	// A damaged file may be replaced too, but not a file that a server has open.
	if s, err := bolt.Open(ctx, bolt.Config{Path: c.Path, Log: c.Log}); errors.Is(err, bolt.ErrInUse) {
		return "", err
	} else if err == nil {
		if err := s.Close(); err != nil {
			return "", err
		}
	}
	aside = c.Path + ".before-" + time.Now().UTC().Format("20060102-150405")
	// Link the old file under a second name, then put the new one under the first: there is always a store, so a server
	// never creates an empty one.
	if err := os.Link(c.Path, aside); err != nil {
		return "", err
	}
	if err := bolt.Replace(c.Path, revision, rs); err != nil {
		return "", errors.Join(err, os.Remove(aside))
	}
	return aside, nil
}
