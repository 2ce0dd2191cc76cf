package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Mark identifies the write that the view shows: etcd's revision of it, and what it left in head. Empty before the first.
func (s *Store) Mark() string {
	at, value := s.place.mark()
	if at == 0 {
		return ""
	}
	return fmt.Sprintf("%d.%s", at, digestOf(value))
}

// Recognises reports whether etcd is known to have the write of a Mark. If etcd has forgotten what it had then, the
// server goes by what it has followed itself, and by the chain, which outlives the history. What none of them knows is
// not recognised; the server logs that. A mark of another form is taken for one that etcd has: a store that was put
// back without a server that went on has another lineage, so that the mark is not asked for. Errors are etcd's.
func (s *Store) Recognises(ctx context.Context, mark string) (bool, error) {
	revision, digest, _ := strings.Cut(mark, ".")
	at, err := strconv.ParseInt(revision, 10, 64)
	if err != nil || at <= 0 {
		return true, nil
	}
	asked, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	r, err := s.client.Get(asked, s.keys.head(), clientv3.WithRev(at))
	switch {
	case errors.Is(err, rpctypes.ErrFutureRev):
		return false, nil
	case errors.Is(err, rpctypes.ErrCompacted):
		is, known := s.place.had(at, digest)
		if !known {
			if is, known, err = s.chained(asked, at, digest); err != nil {
				return false, err
			}
		}
		if !known {
			s.log.Warn("store: it is not known whether etcd has a write that a peer has seen: etcd's history of that time is compacted, and neither this server nor the chain goes back to then; what the peer has and etcd has not is kept until an operator decides",
				"prefix", s.config.Prefix, "etcd_revision", at)
		}
		return is, nil
	case err != nil:
		return false, err
	}
	return len(r.Kvs) == 1 && r.Kvs[0].ModRevision == at && digestOf(string(r.Kvs[0].Value)) == digest, nil
}
