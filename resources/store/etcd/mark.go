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

// Recognises reports whether etcd has the write of a Mark. If etcd has forgotten what it had then, this server goes by what
// it has followed itself. It also reports that etcd has the write if that is unknown, because this server did not run
// then, or the mark is of another form: a store that was put back without a server that went on has another lineage, so
// that the mark is not asked for. It logs that. Errors are etcd's.
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
			s.log.Warn("store: it is not known whether etcd has a write that a peer has seen: etcd's history of that time is compacted, and this server did not run then; deletions that the peer is told of are carried out",
				"prefix", s.config.Prefix, "etcd_revision", at)
		}
		return is || !known, nil
	case err != nil:
		return false, err
	}
	return len(r.Kvs) == 1 && r.Kvs[0].ModRevision == at && digestOf(string(r.Kvs[0].Value)) == digest, nil
}
