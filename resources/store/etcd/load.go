package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/causeway-mesh/causeway/resources"
)

const (
	// pageSize is how many resources one request loads.
	pageSize = 1000
	// busyInterval is how often a start checks whether a cut batch is complete.
	busyInterval = 50 * time.Millisecond
)

// load fills the empty view.
func (s *Store) load(ctx context.Context) error {
	if err := s.ensureFormat(ctx); err != nil {
		return err
	}
	return s.Load(func(put func(*resources.Resource) error) (uint64, error) {
		state, err := s.read(ctx)
		if err != nil {
			return 0, err
		}
		for _, r := range state.resources {
			if err := put(r); err != nil {
				return 0, err
			}
		}
		s.place.leap(state.at, state.head)
		s.place.next, s.place.cluster = state.next, state.cluster
		return state.revision, nil
	})
}

// state is the contents of the store at one revision of etcd.
type state struct {
	resources []*resources.Resource
	// revision is the store's. at is the etcd revision of the last write to head, next the etcd revision to watch from;
	// head is the value that was written.
	revision uint64
	at, next int64
	head     string
	cluster  uint64
}

// read reads everything once no cut batch is being written. It returns ErrFormat if the store was migrated to a newer
// format meanwhile, and ErrUnfinished.
func (s *Store) read(ctx context.Context) (*state, error) {
	for {
		state, err := s.readOnce(ctx, s.keys, false)
		switch {
		case err == nil:
			return state, nil
		case errors.Is(err, rpctypes.ErrCompacted), errors.Is(err, errBusy):
		default:
			return nil, err
		}
		if wait(ctx, busyInterval); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// errBusy reports that a cut batch is being written.
var errBusy = errors.New("a batch is being written")

// readOnce reads everything in the layout of keys, or returns errBusy if a cut batch is being written. ours reports
// that this server holds the writer key and writes no batch.
func (s *Store) readOnce(ctx context.Context, keys keys, ours bool) (*state, error) {
	first, err := s.get(ctx, clientv3.OpGet(keys.head()), clientv3.OpGet(keys.writer()), clientv3.OpGet(keys.format()),
		clientv3.OpGet(keys.program()), clientv3.OpGet(keys.unfinished()))
	if err != nil {
		return nil, err
	}
	if format := valueOf(first, 2); format != strconv.Itoa(keys.version) {
		return nil, s.anotherFormat(format, valueOf(first, 3))
	}
	if valueOf(first, 1) != "" && !ours {
		return nil, errBusy
	}
	if err := s.unfinished(valueOf(first, 4)); err != nil {
		return nil, err
	}
	out := &state{next: first.Header.Revision + 1, cluster: first.Header.GetClusterId()}
	if kvs := first.Responses[0].GetResponseRange().GetKvs(); len(kvs) > 0 {
		h, err := decodeHead(kvs[0].Value)
		if err != nil {
			return nil, err
		}
		out.revision, out.at, out.head = h.Revision, kvs[0].ModRevision, string(kvs[0].Value)
	}
	from := keys.resources()
	end := clientv3.GetPrefixRangeEnd(from)
	for {
		page, err := s.get(ctx, clientv3.OpGet(from, clientv3.WithRange(end), clientv3.WithLimit(pageSize),
			clientv3.WithRev(first.Header.Revision)))
		if err != nil {
			return nil, err
		}
		got := page.Responses[0].GetResponseRange()
		for _, kv := range got.Kvs {
			r, err := s.formats[keys.version-1](kv.Key[len(keys.resources()):], kv.Value)
			if errors.Is(err, resources.ErrUnknownType) { // its checksum is right
				return nil, s.unknownType(err, valueOf(first, 3))
			}
			if err != nil {
				return nil, fmt.Errorf("%s: resource %w: restore the store from a backup", s.config.Prefix, err)
			}
			out.resources = append(out.resources, r)
		}
		if !got.More {
			return out, nil
		}
		from = string(got.Kvs[len(got.Kvs)-1].Key) + "\x00"
	}
}

// valueOf returns the value of the first key that a part of a transaction read, or "" if there is none.
func valueOf(r *clientv3.TxnResponse, part int) string {
	if kvs := r.Responses[part].GetResponseRange().GetKvs(); len(kvs) > 0 {
		return string(kvs[0].Value)
	}
	return ""
}

// modRevisionOf returns the etcd revision of the last change to the first key that a part of a transaction read, or 0
// if there is none.
func modRevisionOf(r *clientv3.TxnResponse, part int) int64 {
	if kvs := r.Responses[part].GetResponseRange().GetKvs(); len(kvs) > 0 {
		return kvs[0].ModRevision
	}
	return 0
}

func (s *Store) get(ctx context.Context, ops ...clientv3.Op) (*clientv3.TxnResponse, error) {
	asked, cancel := context.WithTimeout(ctx, max(s.config.Timeout, 10*time.Second))
	defer cancel()
	r, err := s.client.Txn(asked).Then(ops...).Commit()
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return nil, s.config.unreachable(ctx, err)
	}
	return r, err
}
