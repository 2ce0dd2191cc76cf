package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// revokeTimeout bounds how long a stopping server waits for etcd to revoke its lease.
const revokeTimeout = time.Second

// Registration describes a server that registers as a live replica.
type Registration struct {
	// ID identifies the replica. Value returns what the replica shows; it is called when the replica arrives and on each
	// signal of Changed, which may be nil. Value must not block.
	ID      string
	Value   func() []byte
	Changed <-chan struct{}
	// Registered, if not nil, is called each time that the server is registered.
	Registered func()
}

// Register keeps a server among the live replicas until ctx ends, and then removes it at once. A dead server stays a
// replica until its lease ends. A server that lost its lease returns as the youngest replica.
func (b *SharedState) Register(ctx context.Context, a Registration) {
	for ctx.Err() == nil {
		if err := b.register(ctx, a); err != nil && ctx.Err() == nil {
			b.log.Debug("cannot register this replica: trying again", "error", err)
			wait(ctx, b.lease/10)
		}
	}
}

func (b *SharedState) register(ctx context.Context, a Registration) error {
	client := b.store.client
	asked, cancel := context.WithTimeout(ctx, b.store.config.Timeout)
	defer cancel()
	granted, err := client.Grant(asked, max(2, int64(b.lease/time.Second)))
	if err != nil {
		return err
	}
	defer func() {
		revoke, cancel := context.WithTimeout(context.Background(), revokeTimeout)
		defer cancel()
		// If the request does not reach etcd, the lease expires.
		_, _ = client.Revoke(revoke, granted.ID)
	}()
	show := func(ctx context.Context) error {
		_, err := client.Put(ctx, b.store.keys.replicas()+a.ID, string(a.Value()), clientv3.WithLease(granted.ID))
		return err
	}
	if err := show(asked); err != nil {
		return err
	}
	alive, err := client.KeepAlive(ctx, granted.ID)
	if err != nil {
		return err
	}
	if a.Registered != nil {
		a.Registered()
	}
	for {
		select {
		case _, ok := <-alive:
			if !ok {
				return errors.New("the lease has ended")
			}
		case <-a.Changed:
			shown, cancel := context.WithTimeout(ctx, b.store.config.Timeout)
			if err := show(shown); err != nil {
				b.log.Debug("cannot update this server's entry in the shared state", "error", err) // until the next change
			}
			cancel()
		}
	}
}

// History extends the chain of writes, and compacts etcd's history from before the last keep, until ctx ends; it
// compacts nothing if keep is 0. It does so only while leads returns true, so that one server does it. A server that is
// at most keep behind need not compare everything.
func (b *SharedState) History(ctx context.Context, keep time.Duration, leads func() bool) {
	interval := chainInterval
	if keep > 0 {
		interval = min(keep, interval)
	}
	var before int64
	compacted := time.Now()
	for {
		wait(ctx, interval)
		if ctx.Err() != nil {
			return
		}
		if leads() {
			if err := b.store.extend(ctx); err != nil {
				b.log.Warn("the chain of writes was not extended", "error", err)
			}
		}
		if keep <= 0 || time.Since(compacted) < keep {
			continue
		}
		compacted = time.Now()
		now, err := b.compact(ctx, before, leads())
		if err != nil {
			b.log.Warn("etcd's history was not compacted", "error", err)
			continue
		}
		before = now
	}
}

// compact returns etcd's revision. If ours is set, it compacts up to before.
func (b *SharedState) compact(ctx context.Context, before int64, ours bool) (now int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*b.store.config.Timeout)
	defer cancel()
	r, err := b.store.client.Get(ctx, b.store.keys.head(), clientv3.WithKeysOnly())
	if err != nil {
		return 0, err
	}
	if before > 0 && ours {
		if _, err := b.store.client.Compact(ctx, before); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
			return 0, fmt.Errorf("up to %d: %w", before, err)
		}
	}
	return r.Header.Revision, nil
}
