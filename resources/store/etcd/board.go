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

// DefaultMemberLease is how long a dead server still counts as a member.
const DefaultMemberLease = 5 * time.Second

// Board is what servers with the same store share beside it: the members that are present, and notes, of which the last
// write wins. It has no revisions, no checks and no history. Its methods are safe for concurrent use.
type Board struct {
	store *Store
	lease time.Duration
	log   *slog.Logger
}

// Member is a server that is present. The first in a list leads.
type Member struct {
	ID    string
	Value []byte
	// since orders members by arrival.
	since int64
}

// Note is a key and its value. A nil Value means that the key is absent.
type Note struct {
	Key   string
	Value []byte
}

// News is a change of a board.
type News struct {
	// Members are all present members, in order of arrival.
	Members []Member
	// Notes are those that changed, or all notes if Whole is set.
	Notes []Note
	Whole bool
}

// Board returns the board beside the store. A lease of zero means DefaultMemberLease. etcd counts whole seconds, with a
// minimum of two.
func (s *Store) Board(lease time.Duration) *Board {
	setDefault(&lease, DefaultMemberLease)
	return &Board{store: s, lease: lease, log: s.log}
}

// Put writes notes, in several transactions if there are many. It returns ErrNoteTooLarge, with the keys, if it wrote
// all notes except those that etcd never accepts. Other errors are etcd's, and some notes may have been written.
func (b *Board) Put(ctx context.Context, notes []Note) error {
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
func (b *Board) each(ctx context.Context, notes []Note, together error) (refused []string, err error) {
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

func (b *Board) op(n Note) clientv3.Op {
	if n.Value == nil {
		return clientv3.OpDelete(b.store.keys.notes() + n.Key)
	}
	return clientv3.OpPut(b.store.keys.notes()+n.Key, string(n.Value))
}

// Clear removes all notes whose keys begin with prefix. Errors are etcd's.
func (b *Board) Clear(ctx context.Context, prefix string) error {
	return b.commit(ctx, []clientv3.Op{clientv3.OpDelete(b.store.keys.notes()+prefix, clientv3.WithPrefix())})
}

func (b *Board) commit(ctx context.Context, ops []clientv3.Op) error {
	ctx, cancel := context.WithTimeout(ctx, b.store.config.Timeout)
	defer cancel()
	if _, err := b.store.client.Txn(ctx).Then(ops...).Commit(); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	return nil
}

// Follow calls hear with the contents of the board and then with each change, one call at a time, until ctx ends. After
// an interruption it reports the whole board again.
func (b *Board) Follow(ctx context.Context, hear func(News)) {
	pause := backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(2*time.Second), backoff.WithMaxElapsedTime(0))
	for ctx.Err() == nil {
		begin := time.Now()
		err := b.follow(ctx, hear)
		if time.Since(begin) > time.Minute {
			pause.Reset()
		}
		b.log.Debug("following the board again", "error", err)
		wait(ctx, pause.NextBackOff())
	}
}

func (b *Board) follow(ctx context.Context, hear func(News)) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	members, notes, next, err := b.load(ctx)
	if err != nil {
		return err
	}
	hear(News{Members: members, Notes: notes, Whole: true})
	for r := range b.store.client.Watch(ctx, b.store.keys.prefix+"/board/", clientv3.WithPrefix(),
		clientv3.WithRev(next)) {
		if err := r.Err(); err != nil {
			return err
		}
		news := News{}
		for _, e := range r.Events {
			gone := e.Type == clientv3.EventTypeDelete
			if id, ok := strings.CutPrefix(string(e.Kv.Key), b.store.keys.members()); ok {
				members = slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return m.ID == id })
				if !gone {
					members = append(members, Member{ID: id, Value: e.Kv.Value, since: e.Kv.CreateRevision})
				}
			} else if key, ok := strings.CutPrefix(string(e.Kv.Key), b.store.keys.notes()); ok {
				n := Note{Key: key}
				if !gone {
					n.Value = e.Kv.Value
				}
				news.Notes = append(news.Notes, n)
			}
		}
		slices.SortFunc(members, byArrival)
		news.Members = members
		hear(news)
	}
	return ctx.Err()
}

func byArrival(a, b Member) int { return int(a.since - b.since) }

// Members returns the present members, in order of arrival. Errors are etcd's.
func (b *Board) Members(ctx context.Context) ([]Member, error) {
	members, _, _, err := b.load(ctx)
	return members, err
}

// load reads the board. next is the revision to watch from.
func (b *Board) load(ctx context.Context) (members []Member, notes []Note, next int64, err error) {
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
	at, err := read(s.keys.members(), 0, func(kv *mvccpb.KeyValue) {
		members = append(members, Member{ID: strings.TrimPrefix(string(kv.Key), s.keys.members()), Value: kv.Value,
			since: kv.CreateRevision})
	})
	if err != nil {
		return nil, nil, 0, err
	}
	_, err = read(s.keys.notes(), at, func(kv *mvccpb.KeyValue) {
		notes = append(notes, Note{Key: strings.TrimPrefix(string(kv.Key), s.keys.notes()), Value: kv.Value})
	})
	slices.SortFunc(members, byArrival)
	return members, notes, at + 1, err
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
