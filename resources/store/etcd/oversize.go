package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/causeway-mesh/causeway/resources/store"
)

// oversize reports a transaction of a size that etcd never accepts.
type oversize struct {
	part part
	why  error
}

func (o *oversize) Error() string {
	return fmt.Sprintf("a transaction of %d bytes: %v", o.part.size, o.why)
}

// isTooLarge reports whether etcd, or the connection to it, refused a request for its size.
func isTooLarge(err error) bool {
	if errors.Is(err, rpctypes.ErrRequestTooLarge) {
		return true
	}
	return status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max")
}

// shrink makes later transactions smaller than a refused one, and reports whether that is possible.
func (s *Store) shrink(refused part) bool {
	if len(refused.ops) == 1 {
		return false
	}
	s.maxBytes = refused.size / 2
	s.log.Warn("store: etcd accepts smaller transactions than expected: raise its --max-request-bytes", "bytes",
		refused.size)
	return true
}

// refuseAlone refuses the request whose resource can never be written, and commits the others in the group.
func (s *Store) refuseAlone(group []*store.Request, large *oversize) {
	if len(group) > 1 {
		for _, r := range group {
			s.commit([]*store.Request{r})
		}
		return
	}
	s.log.Warn("store: a resource is larger than etcd accepts", "type", large.part.key.Type, "name",
		large.part.key.Name, "bytes", large.part.size)
	group[0].Answer(nil, &store.TooLargeError{Key: large.part.key, Bytes: large.part.size})
}

// probe lets etcd check the size of all parts before any is written, with a transaction that does nothing: a refusal
// half way would leave a partial batch.
func (w *writing) probe(ctx context.Context, parts []part) error {
	if len(parts) == 1 {
		return nil
	}
	s := w.store
	taken := s.taken
	for _, p := range parts {
		if p.size <= taken {
			continue
		}
		asked, cancel := context.WithTimeout(ctx, s.config.Timeout)
		_, err := s.client.Txn(asked).If(clientv3.Compare(clientv3.Value(s.keys.format()), "=", "")).Then(p.ops...).Commit()
		cancel()
		switch {
		case isTooLarge(err):
			return &oversize{p, err}
		case err != nil:
			return fmt.Errorf("%w (%w)", store.ErrUnavailable, err)
		}
		taken = p.size
	}
	return nil
}
