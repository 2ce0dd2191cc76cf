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
	"github.com/causeway-mesh/causeway/resources/store"
)

const (
	// pageSize is how many resources one request loads.
	pageSize = 1000
	// busyInterval is how often a start looks whether a cut batch is complete.
	busyInterval = 50 * time.Millisecond
)

// load fills the empty view.
func (s *Store) load(ctx context.Context) error {
	if err := s.checkFormat(ctx); err != nil {
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
		s.place.move(state.at)
		s.place.next = state.next
		return state.revision, nil
	})
}

// checkFormat refuses what a newer version wrote, and marks an empty prefix as ours.
func (s *Store) checkFormat(ctx context.Context) error {
	asked, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	name := s.keys.format()
	r, err := s.client.Txn(asked).
		If(clientv3.Compare(clientv3.CreateRevision(name), "=", 0)).
		Then(clientv3.OpPut(name, strconv.Itoa(formatVersion))).
		Else(clientv3.OpGet(name)).Commit()
	if err != nil {
		return s.config.unreachable(ctx, err)
	}
	if r.Succeeded {
		return nil
	}
	value := string(r.Responses[0].GetResponseRange().GetKvs()[0].Value)
	format, err := strconv.Atoi(value)
	if err != nil || format < 1 {
		return fmt.Errorf("%s is %q, not a format version: is %s the prefix of something else?", name, value, s.config.Prefix)
	}
	if format > formatVersion {
		return fmt.Errorf("%s has format %d, and this program reads up to %d: %w: start the newer program", s.config.Prefix, format, formatVersion, ErrFormat)
	}
	return nil
}

// state is everything, at one revision of etcd.
type state struct {
	resources []*resources.Resource
	// revision is the store's; at is where head was last written, next where to watch from, both etcd's.
	revision uint64
	at, next int64
}

// read reads everything, when no cut batch is under way.
func (s *Store) read(ctx context.Context) (*state, error) {
	for {
		state, err := s.readOnce(ctx)
		switch {
		case err == nil:
			return state, nil
		case errors.Is(err, rpctypes.ErrCompacted), errors.Is(err, errBusy):
		default:
			return nil, err
		}
		select {
		case <-time.After(busyInterval):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// errBusy: a cut batch is under way.
var errBusy = errors.New("a batch is being written")

func (s *Store) readOnce(ctx context.Context) (*state, error) {
	first, err := s.get(ctx, clientv3.OpGet(s.keys.head()), clientv3.OpGet(s.keys.writer()))
	if err != nil {
		return nil, err
	}
	if first.Responses[1].GetResponseRange().GetCount() > 0 {
		return nil, errBusy
	}
	out := &state{next: first.Header.Revision + 1}
	if kvs := first.Responses[0].GetResponseRange().GetKvs(); len(kvs) > 0 {
		h, err := decodeHead(kvs[0].Value)
		if err != nil {
			return nil, err
		}
		out.revision, out.at = h.Revision, kvs[0].ModRevision
	}
	from := s.keys.resources()
	end := clientv3.GetPrefixRangeEnd(from)
	for {
		page, err := s.get(ctx, clientv3.OpGet(from, clientv3.WithRange(end), clientv3.WithLimit(pageSize), clientv3.WithRev(first.Header.Revision)))
		if err != nil {
			return nil, err
		}
		got := page.Responses[0].GetResponseRange()
		for _, kv := range got.Kvs {
			r, err := store.DecodeEntry(kv.Key[len(s.keys.resources()):], kv.Value)
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

func (s *Store) get(ctx context.Context, ops ...clientv3.Op) (*clientv3.TxnResponse, error) {
	asked, cancel := context.WithTimeout(ctx, max(s.config.Timeout, 10*time.Second))
	defer cancel()
	r, err := s.client.Txn(asked).Then(ops...).Commit()
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return nil, s.config.unreachable(ctx, err)
	}
	return r, err
}
