package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// wholeBytes bounds a part of what is written as a whole, in bytes: each part passes within Config.Timeout and
// Config.WriterLease over a link of 50 KB/s.
func (s *Store) wholeBytes() int { return min(s.maxBytes, 128<<10) }

// Replace makes the store hold exactly rs, at a revision, whatever its contents. Until the last part is written, no
// server opens the store, but one that replaces it (Config.Unfinished); servers that have it open end with ErrReplaced.
// The caller must not change the resources afterwards. Errors: store.ErrUnavailable; ErrUncertain beside it if only a
// part may have been written: then call it again.
func (s *Store) Replace(ctx context.Context, revision uint64, rs []*resources.Resource) error {
	t := s.Begin()
	defer t.Abort()
	changes := differences(t, rs)
	w, err := s.write(ctx, []*store.Commit{{Revision: revision, Changes: changes}}, true)
	if errors.Is(err, errLate) {
		return fmt.Errorf("etcd: %w (a server writes there: stop it first)", store.ErrUnavailable)
	}
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	t.Adopt(revision, changes)
	t.Commit()
	s.place.move(w.expected, w.value)
	return nil
}

// mark returns the operations by which the next part of a replacement says that it is not the last one, or is.
func (w *writing) mark() []clientv3.Op {
	name := w.store.keys.unfinished()
	switch {
	case !w.replaces:
		return nil
	case w.head.whole():
		return []clientv3.Op{clientv3.OpDelete(name)}
	case w.head.Part == 1:
		return []clientv3.Op{clientv3.OpPut(name, time.Now().UTC().Format(time.RFC3339))}
	}
	return nil
}

// unfinished returns ErrUnfinished if since, the value of the mark, says that a replacement has begun and not ended.
func (s *Store) unfinished(since string) error {
	if since == "" || s.config.Unfinished {
		return nil
	}
	return fmt.Errorf("%s: %w (begun %s): what is there belongs to no one state: repeat the causewayctl restore or migrate-store into it, with --overwrite",
		s.config.Prefix, ErrUnfinished, since)
}

// wasReplaced returns ErrReplaced, and ends writing and following, if the contents were replaced between two values of
// head.
func (s *Store) wasReplaced(before, now int) error {
	if now <= before {
		return nil
	}
	return s.ended(ErrReplaced, fmt.Errorf("%d times, and %d when this server began", now, before))
}
