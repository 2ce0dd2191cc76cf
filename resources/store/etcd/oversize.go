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

// oversize: etcd takes no transaction of this size, now or later.
type oversize struct {
	part part
	why  error
}

func (o *oversize) Error() string {
	return fmt.Sprintf("a transaction of %d bytes: %v", o.part.size, o.why)
}

// isTooLarge says whether etcd, or the connection to it, refused a request for its size.
func isTooLarge(err error) bool {
	if errors.Is(err, rpctypes.ErrRequestTooLarge) {
		return true
	}
	return status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max")
}

// shrink has later transactions be smaller than a refused one, and reports whether they can be.
func (s *Store) shrink(refused part) bool {
	if len(refused.ops) == 1 {
		return false
	}
	s.maxBytes = refused.size / 2
	s.log.Warn("store: etcd takes smaller transactions than expected: raise its --max-request-bytes", "bytes", refused.size)
	return true
}

// refuseAlone refuses the request whose resource can never be written, and commits its neighbours in the group.
func (s *Store) refuseAlone(group []*store.Request, large *oversize) {
	if len(group) > 1 {
		for _, r := range group {
			s.commit([]*store.Request{r})
		}
		return
	}
	s.log.Warn("store: a resource is larger than etcd takes", "type", large.part.key.Type, "name", large.part.key.Name, "bytes", large.part.size)
	group[0].Answer(nil, &store.TooLargeError{Key: large.part.key, Bytes: large.part.size})
}

// probe has etcd judge the size of parts before any of them is written, by a transaction that does nothing: a refusal half way would
// leave half a batch.
func (w *writing) probe(ctx context.Context, parts []part) error {
	if len(parts) == 1 {
		return nil
	}
	s := w.store
	for _, p := range parts {
		if p.size <= s.taken {
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
	}
	return nil
}
