package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// DefaultReplicaLease is how long a dead server still counts as live.
const DefaultReplicaLease = 5 * time.Second

// SharedState is what servers with the same store share beside it: which replicas are live, and notes, of which the
// last write wins. It has no revisions, no checks and no history. Its methods are safe for concurrent use.
type SharedState struct {
	store *Store
	lease time.Duration
	log   *slog.Logger
}

// Replica is a live server. The first in a list leads.
type Replica struct {
	ID    string
	Value []byte
	// since orders replicas by arrival.
	since int64
}

// Note is a key and its value. A nil Value means that the key is absent.
type Note struct {
	Key   string
	Value []byte
}

// StateChange is a change of the shared state.
type StateChange struct {
	// Replicas are all live replicas, in order of arrival.
	Replicas []Replica
	// Notes are those that changed, or all notes if Whole is set.
	Notes []Note
	Whole bool
}

// SharedState returns the shared state beside the store. A lease of zero means DefaultReplicaLease. etcd counts whole
// seconds, with a minimum of two.
func (s *Store) SharedState(lease time.Duration) *SharedState {
	setDefault(&lease, DefaultReplicaLease)
	return &SharedState{store: s, lease: lease, log: s.log}
}

// Put writes notes, in several transactions if there are many. It returns ErrNoteTooLarge, with the keys, if it wrote
// all notes except those that etcd never accepts. Other errors are etcd's, and some notes may have been written.
func (b *SharedState) Put(ctx context.Context, notes []Note) error {
	var large []string
	for chunk := range slices.Chunk(notes, b.store.config.MaxOps) {
		for len(chunk) > 0 {
			ops, size, first := []clientv3.Op{}, 0, chunk
			for len(chunk) > 0 && (len(ops) == 0 || size+len(chunk[0].Value) <= b.store.config.MaxBytes) {
				ops = append(ops, b.op(chunk[0]))
				size += len(chunk[0].Value)
				chunk = chunk[1:]
			}
			refused, err := b.each(ctx, first[:len(ops)], b.commit(ctx, ops))
			if err != nil {
				return err
			}
			large = append(large, refused...)
		}
	}
	if len(large) > 0 {
		return fmt.Errorf("%w: %s", ErrNoteTooLarge, strings.Join(large, ", "))
	}
	return nil
}

// each writes notes one by one if etcd refused them together for their size, and returns the keys of those that it
// refuses even alone.
func (b *SharedState) each(ctx context.Context, notes []Note, together error) (refused []string, err error) {
	if !isTooLarge(errors.Unwrap(together)) {
		return nil, together
	}
	for _, n := range notes {
		switch err := b.commit(ctx, []clientv3.Op{b.op(n)}); {
		case err == nil:
		case isTooLarge(errors.Unwrap(err)):
			refused = append(refused, n.Key)
		default:
			return refused, err
		}
	}
	return refused, nil
}

func (b *SharedState) op(n Note) clientv3.Op {
	if n.Value == nil {
		return clientv3.OpDelete(b.store.keys.notes() + n.Key)
	}
	return clientv3.OpPut(b.store.keys.notes()+n.Key, string(n.Value))
}

// Clear removes all notes whose keys begin with prefix. Errors are etcd's.
func (b *SharedState) Clear(ctx context.Context, prefix string) error {
	return b.commit(ctx, []clientv3.Op{clientv3.OpDelete(b.store.keys.notes()+prefix, clientv3.WithPrefix())})
}

func (b *SharedState) commit(ctx context.Context, ops []clientv3.Op) error {
	ctx, cancel := context.WithTimeout(ctx, b.store.config.Timeout)
	defer cancel()
	if _, err := b.store.client.Txn(ctx).Then(ops...).Commit(); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	return nil
}

// Follow calls apply with the contents of the shared state and then with each change, one call at a time, until ctx
// ends. After an interruption it reports the whole shared state again.
func (b *SharedState) Follow(ctx context.Context, apply func(StateChange)) {
	pause := backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(2*time.Second), backoff.WithMaxElapsedTime(0))
	for ctx.Err() == nil {
		begin := time.Now()
		err := b.follow(ctx, apply)
		if time.Since(begin) > time.Minute {
			pause.Reset()
		}
		b.log.Debug("following the shared state again", "error", err)
		wait(ctx, pause.NextBackOff())
	}
}

func (b *SharedState) follow(ctx context.Context, apply func(StateChange)) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	replicas, notes, next, err := b.load(ctx)
	if err != nil {
		return err
	}
	apply(StateChange{Replicas: replicas, Notes: notes, Whole: true})
	for r := range b.store.client.Watch(ctx, b.store.keys.prefix+"/board/", clientv3.WithPrefix(),
		clientv3.WithRev(next)) {
		if err := r.Err(); err != nil {
			return err
		}
		change := StateChange{}
		for _, e := range r.Events {
			gone := e.Type == clientv3.EventTypeDelete
			if id, ok := strings.CutPrefix(string(e.Kv.Key), b.store.keys.replicas()); ok {
				replicas = slices.DeleteFunc(slices.Clone(replicas), func(m Replica) bool { return m.ID == id })
				if !gone {
					replicas = append(replicas, Replica{ID: id, Value: e.Kv.Value, since: e.Kv.CreateRevision})
				}
			} else if key, ok := strings.CutPrefix(string(e.Kv.Key), b.store.keys.notes()); ok {
				n := Note{Key: key}
				if !gone {
					n.Value = e.Kv.Value
				}
				change.Notes = append(change.Notes, n)
			}
		}
		slices.SortFunc(replicas, byArrival)
		change.Replicas = replicas
		apply(change)
	}
	return ctx.Err()
}

func byArrival(a, b Replica) int { return int(a.since - b.since) }

// Replicas returns the live replicas, in order of arrival. Errors are etcd's.
func (b *SharedState) Replicas(ctx context.Context) ([]Replica, error) {
	replicas, _, _, err := b.load(ctx)
	return replicas, err
}

// load reads the shared state. next is the revision to watch from.
func (b *SharedState) load(ctx context.Context) (replicas []Replica, notes []Note, next int64, err error) {
	s := b.store
	read := func(prefix string, at int64, each func(*mvccpb.KeyValue)) (int64, error) {
		from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
		for {
			r, err := s.get(ctx, clientv3.OpGet(from, clientv3.WithRange(end), clientv3.WithLimit(pageSize),
				clientv3.WithRev(at)))
			if err != nil {
				return 0, err
			}
			if at == 0 {
				at = r.Header.Revision
			}
			got := r.Responses[0].GetResponseRange()
			for _, kv := range got.Kvs {
				each(kv)
			}
			if !got.More {
				return at, nil
			}
			from = string(got.Kvs[len(got.Kvs)-1].Key) + "\x00"
		}
	}
	at, err := read(s.keys.replicas(), 0, func(kv *mvccpb.KeyValue) {
		replicas = append(replicas, Replica{ID: strings.TrimPrefix(string(kv.Key), s.keys.replicas()), Value: kv.Value,
			since: kv.CreateRevision})
	})
	if err != nil {
		return nil, nil, 0, err
	}
	_, err = read(s.keys.notes(), at, func(kv *mvccpb.KeyValue) {
		notes = append(notes, Note{Key: strings.TrimPrefix(string(kv.Key), s.keys.notes()), Value: kv.Value})
	})
	slices.SortFunc(replicas, byArrival)
	return replicas, notes, at + 1, err
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
