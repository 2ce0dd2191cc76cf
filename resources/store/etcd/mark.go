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

// Recognises reports whether etcd has the write of a Mark. It also does if etcd has forgotten what it had then, or the
// mark is of another form: then that is unknown. Errors are etcd's.
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
		return true, nil
	case err != nil:
		return false, err
	}
	return len(r.Kvs) == 1 && r.Kvs[0].ModRevision == at && digestOf(string(r.Kvs[0].Value)) == digest, nil
}
