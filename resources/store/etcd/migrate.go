package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/causeway-mesh/causeway/resources/store"
)

// migrate converts an older format, or waits briefly if another server writes or already migrates. It holds the writer
// key, so no other server writes meanwhile. The older format stays unchanged until the newer one is complete, and one
// transaction exchanges them. A server that dies in between leaves keys of the newer format that no server reads and
// that the next attempt removes.
func (s *Store) migrate(ctx context.Context, from int) error {
	if s.config.Backup == nil {
		return fmt.Errorf("%s has format %d, and this program writes %d: %w: start a server of this version first, which brings it forward and keeps a backup", s.config.Prefix, from, s.keys.version, ErrOldFormat)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	granted, err := s.client.Grant(ctx, max(1, int64(s.config.WriterLease/time.Second)))
	if err != nil {
		return s.config.unreachable(ctx, err)
	}
	alive, err := s.client.KeepAlive(ctx, granted.ID)
	if err != nil {
		return s.config.unreachable(ctx, err)
	}
	go func() {
		for range alive { // until ctx or the lease ends
		}
	}()
	m := migration{store: s, from: s.keys.of(from), lease: granted.ID}
	defer m.release()
	if begun, err := m.begin(ctx); err != nil || !begun {
		wait(ctx, busyInterval)
		return errors.Join(err, ctx.Err())
	}
	s.log.Info("store: migrating to a newer format", "prefix", s.config.Prefix, "from", from, "to", s.keys.version)
	if err := m.run(ctx); err != nil && !errors.Is(err, errGone) {
		return fmt.Errorf("%s: from format %d to %d: %w", s.config.Prefix, from, s.keys.version, err)
	}
	return nil
}

// migration is one attempt to migrate a store.
type migration struct {
	store *Store
	from  keys
	lease clientv3.LeaseID
}

// begin acquires the writer key. It returns false if another server holds it or the format has changed.
func (m *migration) begin(ctx context.Context) (bool, error) {
	s := m.store
	r, err := s.client.Txn(ctx).If(
		clientv3.Compare(clientv3.Value(s.keys.format()), "=", strconv.Itoa(m.from.version)),
		clientv3.Compare(clientv3.CreateRevision(s.keys.writer()), "=", 0),
	).Then(clientv3.OpPut(s.keys.writer(), s.writer, clientv3.WithLease(m.lease))).Commit()
	if err != nil {
		return false, s.config.unreachable(ctx, err)
	}
	return r.Succeeded, nil
}

// release lets other servers write again.
func (m *migration) release() {
	ctx, cancel := context.WithTimeout(context.Background(), m.store.config.Timeout)
	defer cancel()
	// If the request does not reach etcd, the lease expires.
	_, _ = m.store.client.Revoke(ctx, m.lease)
}

// run keeps a backup, writes the contents in the newer format, and exchanges the two. It returns errGone if this
// attempt lost the writer key.
func (m *migration) run(ctx context.Context) error {
	s := m.store
	old, err := s.readOnce(ctx, m.from, true)
	if err != nil {
		return err
	}
	if err := s.config.Backup(m.from.version, old.revision, old.resources); err != nil {
		return fmt.Errorf("the backup before it: %w", err)
	}
	// Remove what an earlier attempt left behind.
	if err := m.put(ctx, clientv3.OpDelete(s.keys.resources(), clientv3.WithPrefix())); err != nil {
		return err
	}
	commit := &store.Commit{Revision: old.revision}
	for _, r := range old.resources {
		commit.Changes = append(commit.Changes, store.Change{New: r})
	}
	parts, err := s.cut([]*store.Commit{commit}, s.wholeBytes())
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err := m.put(ctx, p.ops...); err != nil {
			return err
		}
	}
	return m.put(ctx,
		clientv3.OpPut(s.keys.format(), strconv.Itoa(s.keys.version)), clientv3.OpPut(s.keys.program(), s.config.Program),
		clientv3.OpDelete(m.from.resources(), clientv3.WithPrefix()), clientv3.OpDelete(s.keys.writer()))
}

// put writes as long as this attempt holds the writer key.
func (m *migration) put(ctx context.Context, ops ...clientv3.Op) error {
	s := m.store
	ctx, cancel := context.WithTimeout(ctx, max(s.config.Timeout, 10*time.Second))
	defer cancel()
	r, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.LeaseValue(s.keys.writer()), "=",
		int64(m.lease))).Then(ops...).Commit()
	switch {
	case err != nil:
		return fmt.Errorf("%w (%w)", store.ErrUnavailable, err)
	case !r.Succeeded:
		return errGone
	}
	return nil
}
