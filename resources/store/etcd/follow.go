package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// follow applies the writes of other servers to the view until ctx ends. After an interruption it continues where it
// was. If etcd has compacted that revision, it compares everything.
func (s *Store) follow(ctx context.Context) {
	f := follower{store: s, next: s.place.next}
	pause := backoff.NewExponentialBackOff(backoff.WithInitialInterval(50*time.Millisecond),
		backoff.WithMaxInterval(2*time.Second), backoff.WithMaxElapsedTime(0))
	for {
		begin := time.Now()
		err := s.recognise(ctx)
		if err == nil {
			err = f.watch(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, rpctypes.ErrCompacted) || errors.Is(err, errUnreadable) || errors.Is(err, errGap) {
			s.log.Info("store: comparing everything with etcd", "prefix", s.config.Prefix, "error", err)
			err = f.compare(ctx)
		}
		if errors.Is(err, ErrWentBack) || errors.Is(err, ErrReplaced) {
			return
		}
		if errors.Is(err, ErrFormat) {
			s.health.end(fmt.Errorf("%w: %w", store.ErrUnavailable, err))
			s.log.Error("store: "+err.Error(), "prefix", s.config.Prefix)
			return
		}
		if err != nil && s.health.suspect(err) {
			s.log.Warn("store: lost etcd; reads continue from memory", "endpoints", s.config.Endpoints, "error", err)
		}
		if time.Since(begin) > time.Minute {
			pause.Reset()
		}
		select {
		case <-time.After(pause.NextBackOff()):
		case <-ctx.Done():
			return
		}
	}
}

var (
	// errUnreadable reports an event that cannot be decoded.
	errUnreadable = errors.New("unreadable event")
	// errGap reports that the watch missed a write.
	errGap = errors.New("the watch left out a write")
)

// follower is the state of following.
type follower struct {
	store *Store
	// next is the first etcd revision not seen yet.
	next int64
	// pending are the changes of a cut batch that is not complete, of which head is the last that was seen, at etcd's
	// revision at; value is how etcd has it.
	pending []store.Change
	head    head
	value   string
	at      int64
}

// watch applies events until the watch breaks, or the store finds that no more arrive. The header of a response has
// etcd's revision, not the progress of the watch: while the watch catches up, etcd sends old events in batches under
// the newest revision. So only events count as seen.
func (f *follower) watch(ctx context.Context) error {
	s := f.store
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	s.health.watching(cancel)
	if len(f.pending) == 0 {
		f.next = s.place.from(f.next)
	}
	for r := range s.client.Watch(ctx, s.keys.store(), clientv3.WithRange(s.keys.end()), clientv3.WithRev(f.next)) {
		if err := r.Err(); err != nil {
			return err
		}
		if err := f.apply(r.Events); err != nil {
			return err
		}
	}
	if s.health.isBehind() {
		return errGap
	}
	return errors.New("the watch ended")
}

// apply applies events, which arrive complete for each revision of etcd.
func (f *follower) apply(events []*clientv3.Event) error {
	for len(events) > 0 {
		at := events[0].Kv.ModRevision
		n := 1
		for n < len(events) && events[n].Kv.ModRevision == at {
			n++
		}
		if err := f.one(at, events[:n]); err != nil {
			return err
		}
		f.next = at + 1
		events = events[n:]
	}
	return nil
}

// one applies one transaction.
func (f *follower) one(at int64, events []*clientv3.Event) error {
	s := f.store
	t := s.Begin()
	defer t.Abort()
	if at <= s.place.seen() {
		return nil // Written by this server.
	}
	writerGone, moved := false, false
	for _, e := range events {
		name := string(e.Kv.Key)
		switch {
		case name == s.keys.format() && string(e.Kv.Value) != strconv.Itoa(s.keys.version):
			// Nothing in it is for this program: the keys that it knows may be gone.
			return fmt.Errorf("%w: %w", errUnreadable, ErrFormat)
		case name == s.keys.head() && e.Type == clientv3.EventTypePut:
			h, err := decodeHead(e.Kv.Value)
			if err != nil {
				return fmt.Errorf("%w: %w", errUnreadable, err)
			}
			if err := f.continues(h, at); err != nil {
				return err
			}
			f.head, f.value, f.at, moved = h, string(e.Kv.Value), at, true
		case name == s.keys.writer():
			writerGone = e.Type == clientv3.EventTypeDelete
		case len(name) > len(s.keys.resources()) && name[:len(s.keys.resources())] == s.keys.resources():
			change, err := f.change(e)
			if err != nil {
				return fmt.Errorf("%w: %w", errUnreadable, err)
			}
			f.pending = append(f.pending, change)
		}
	}
	// A batch becomes visible once it is complete, or once its writer can no longer complete it.
	if moved && f.head.whole() || writerGone && len(f.pending) > 0 {
		f.publish(t)
	}
	return nil
}

// continues judges whether a write at etcd's revision follows the last one that was seen. A running watch is not
// checked again when its connection is restored: the client resumes the watch by itself, whatever store is behind the
// endpoint by then.
func (f *follower) continues(h head, at int64) error {
	last, value := f.store.place.mark()
	if f.at > last {
		last, value = f.at, f.value
	}
	if err := f.store.wasReplaced(replacements(value), h.Replaced); err != nil {
		return err
	}
	switch {
	case h.After == 0:
		return nil
	case h.After != last:
		return fmt.Errorf("%w: one at %d follows one at %d, and the last that was seen is at %d", errGap, at, h.After, last)
	case !h.isAfter(value):
		return f.store.wentBack(fmt.Errorf("what it has of %d is not what it had", last))
	}
	return nil
}

func (f *follower) change(e *clientv3.Event) (store.Change, error) {
	key := e.Kv.Key[len(f.store.keys.resources()):]
	if e.Type == clientv3.EventTypeDelete {
		k, err := store.DecodeKey(key)
		return store.Change{Old: &resources.Resource{Key: k}}, err
	}
	r, err := store.DecodeEntry(key, e.Kv.Value)
	return store.Change{New: r}, err
}

func (f *follower) publish(t *store.Transaction) {
	t.Adopt(f.head.Revision, f.pending)
	f.pending = nil
	t.Commit()
	f.store.place.move(f.at, f.value)
}

// compare reads everything and adopts the difference.
func (f *follower) compare(ctx context.Context) error {
	s := f.store
	if err := s.recognise(ctx); err != nil {
		return err
	}
	at, value := s.place.mark()
	revision := s.Snapshot().Revision()
	state, err := s.read(ctx)
	if err != nil {
		return err
	}
	other := state.at == at && state.head != value
	if s.place.isElsewhere(state.cluster) || state.at < at || state.revision < revision || other {
		return s.wentBack(fmt.Errorf("its last write is %d at %d, and was %d at %d", state.revision, state.at, revision, at))
	}
	if err := s.wasReplaced(replacements(value), replacements(state.head)); err != nil {
		return err
	}
	t := s.Begin()
	defer t.Abort()
	f.pending, f.at = nil, state.at
	f.next = state.next
	s.health.caughtUp()
	if state.at <= s.place.seen() {
		return nil
	}
	t.Adopt(state.revision, differences(t, state.resources))
	t.Commit()
	s.place.leap(state.at, state.head)
	return nil
}

// differences returns the changes that turn the view into the contents of etcd.
func differences(t *store.Transaction, now []*resources.Resource) []store.Change {
	var changes []store.Change
	there := make(map[resources.Key]bool, len(now))
	for _, r := range now {
		there[r.Key] = true
		changes = append(changes, store.Change{New: r})
	}
	for r := range t.All() {
		if !there[r.Key] {
			changes = append(changes, store.Change{Old: r})
		}
	}
	return changes
}
