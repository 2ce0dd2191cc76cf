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

// ErrNotEmpty reports that a store exists and the caller did not allow its replacement.
var ErrNotEmpty = errors.New("there is a store already")

// ErrInUse reports that servers use the store in etcd.
var ErrInUse = errors.New("the store is in use")

// Replaceable returns the error of a Replace that would change nothing: those of Validate, ErrNotEmpty, ErrInUse,
// bolt.ErrInUse, store.ErrUnavailable, and the operating system's.
func Replaceable(ctx context.Context, c Config, overwrite bool) (err error) {
	if err := c.Validate(); err != nil {
		return err
	}
	if c.Kind != Etcd {
		_, err := replaceableFile(ctx, c, overwrite)
		return err
	}
	c.replacing = true
	opened, err := Open(ctx, c)
	if err != nil {
		return err
	}
	return errors.Join(vacant(ctx, opened, c, overwrite), opened.Close())
}

// vacant refuses to replace existing contents of etcd.
func vacant(ctx context.Context, opened *Store, c Config, overwrite bool) error {
	if err := deserted(ctx, opened.SharedState(), c.Prefix); err != nil {
		return err
	}
	if n := count(opened); n > 0 && !overwrite {
		return fmt.Errorf("%s in etcd has %d resources: %w", c.Prefix, n, ErrNotEmpty)
	}
	return nil
}

// Replace makes a store contain exactly rs, at a revision. No server may have a file open. If a store exists, Replace
// returns ErrNotEmpty unless overwrite is set. With overwrite it moves a file to the returned path, and deletes the
// contents of etcd, which no server opens before the new ones are complete. Errors: those of Validate, ErrNotEmpty,
// ErrInUse, store.ErrUnavailable, bolt.ErrInUse, and the operating system's.
func Replace(ctx context.Context, c Config, revision uint64, rs []*resources.Resource, overwrite bool) (aside string,
	err error) {
	if err := c.Validate(); err != nil {
		return "", err
	}
	if c.Kind != Etcd {
		return replaceFile(ctx, c, revision, rs, overwrite)
	}
	c.replacing = true
	opened, err := Open(ctx, c)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	if err := vacant(ctx, opened, c, overwrite); err != nil {
		return "", err
	}
	// Revisions only grow. Otherwise servers that follow would not see the change.
	return "", opened.Store.(*etcd.Store).Replace(ctx, max(revision, opened.Snapshot().Revision()+1), rs)
}

// leaving is how long Replace waits for servers to leave: the lease of a killed server ends by then.
const leaving = etcd.DefaultReplicaLease + 2*time.Second

// deserted fails if servers use the store.
func deserted(ctx context.Context, shared *etcd.SharedState, prefix string) error {
	wait, cancel := context.WithTimeout(ctx, leaving)
	defer cancel()
	for {
		present, err := shared.Replicas(ctx)
		if err != nil || len(present) == 0 {
			return err
		}
		select {
		case <-wait.Done():
			return fmt.Errorf("%s in etcd: %w by %d servers, of which one is %s: stop them first", prefix, ErrInUse,
				len(present), present[0].ID)
		case <-time.After(500 * time.Millisecond):
		}
	}
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
	exists, err := replaceableFile(ctx, c, overwrite)
	if err != nil {
		return "", err
	}
	if !exists {
		return "", bolt.Create(c.Path, revision, rs)
	}
	aside = c.Path + ".before-" + c.now().UTC().Format("20060102-150405.000")
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

// replaceableFile reports whether there is a file. It fails if the file may not be replaced.
func replaceableFile(ctx context.Context, c Config, overwrite bool) (exists bool, err error) {
	switch _, err := os.Lstat(c.Path); {
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !overwrite:
		return false, fmt.Errorf("%s: %w", c.Path, ErrNotEmpty)
	}
	// A damaged file may be replaced too, but not a file that a server has open.
	s, err := bolt.Open(ctx, bolt.Config{Path: c.Path, Log: c.Log})
	switch {
	case errors.Is(err, bolt.ErrInUse):
		return false, err
	case err == nil:
		err = s.Close()
	default:
		err = nil
	}
	return true, err
}
