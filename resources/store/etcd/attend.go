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

// Attendance describes a server as a member of a board.
type Attendance struct {
	// ID identifies the member. Value returns what the member shows; it is called when the member arrives and on each
	// signal of Changed, which may be nil. Value must not block.
	ID      string
	Value   func() []byte
	Changed <-chan struct{}
	// Arrived, if not nil, is called each time that the server becomes a member.
	Arrived func()
}

// Attend keeps a server among the board's members until ctx ends, and then removes it at once. A dead server stays a
// member until its lease ends. A server that lost its lease returns as the youngest member.
func (b *Board) Attend(ctx context.Context, a Attendance) {
	for ctx.Err() == nil {
		if err := b.attend(ctx, a); err != nil && ctx.Err() == nil {
			b.log.Debug("cannot join the board: trying again", "error", err)
			wait(ctx, b.lease/10)
		}
	}
}

func (b *Board) attend(ctx context.Context, a Attendance) error {
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
		_, err := client.Put(ctx, b.store.keys.members()+a.ID, string(a.Value()), clientv3.WithLease(granted.ID))
		return err
	}
	if err := show(asked); err != nil {
		return err
	}
	alive, err := client.KeepAlive(ctx, granted.ID)
	if err != nil {
		return err
	}
	if a.Arrived != nil {
		a.Arrived()
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
				b.log.Debug("cannot update this server's entry on the board", "error", err) // until the next change
			}
			cancel()
		}
	}
}

// History compacts etcd's history from before the last keep, until ctx ends. It does so only while leads returns true,
// so that one server does it. A server that is at most keep behind need not compare everything.
func (b *Board) History(ctx context.Context, keep time.Duration, leads func() bool) {
	var before int64
	for {
		wait(ctx, keep)
		if ctx.Err() != nil {
			return
		}
		now, err := b.compact(ctx, before, leads())
		if err != nil {
			b.log.Warn("etcd's history was not compacted", "error", err)
			continue
		}
		before = now
	}
}

// compact returns etcd's revision. If ours is set, it compacts up to before.
func (b *Board) compact(ctx context.Context, before int64, ours bool) (now int64, err error) {
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
