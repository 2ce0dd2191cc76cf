package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/causeway-mesh/causeway/resources/store"
)

// lastQuestion is how much longer than the time of a transaction a writer waits to learn whether it happened. A server
// that ends waits for its writers.
const lastQuestion = time.Second

var (
	// errLate reports that another server wrote first.
	errLate = errors.New("another server wrote first")
	// errGone reports that the writer's lease ended before the last part.
	errGone = errors.New("the lease of the writer ended before its last part")
)

// commit applies a group: first in memory, hidden from readers, then in etcd, then visibly. If another server wrote
// first, it follows that write and evaluates the batches again.
func (s *Store) commit(group []*store.Request) {
	s.metrics.Group(len(group))
	if err := s.health.err(); err != nil {
		s.fail(group, err)
		return
	}
	// A cut batch of a dead server blocks others until its lease ends.
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Timeout+2*s.config.WriterLease)
	defer cancel()
	for {
		late, err := s.try(ctx, group)
		if errors.Is(err, errLate) {
			if late <= s.place.seen() {
				wait(ctx, busyInterval) // no write yet: another server has the writer key and is about to write
			}
			err = s.place.wait(ctx, late)
			if err == nil {
				continue
			}
			err = fmt.Errorf("waiting for the writes of other servers: %w", err)
		}
		var large *oversize
		if errors.As(err, &large) {
			if s.shrink(large.part) {
				continue
			}
			s.refuseAlone(group, large)
			return
		}
		if err != nil {
			s.fail(group, err)
		}
		return
	}
}

// try applies the group once and answers its writers. With errLate, late is the etcd revision to wait for.
func (s *Store) try(ctx context.Context, group []*store.Request) (late int64, err error) {
	t := s.Begin()
	defer t.Abort()
	answers := t.ApplyAll(group)
	commits := t.Commits()
	if len(commits) == 0 {
		// That there is nothing to do, or that a batch is refused, is certain only if the view is current.
		if late, err := s.confirm(ctx); err != nil {
			return late, err
		}
		answers.Send()
		return 0, nil
	}
	w, err := s.write(ctx, commits, false)
	if err != nil {
		return w.late, err
	}
	t.Commit()
	s.place.move(w.expected, w.value)
	answers.Send()
	return 0, nil
}

// confirm checks that the view shows etcd's last write. If not, it returns errLate, and late is the etcd revision to
// wait for.
func (s *Store) confirm(ctx context.Context) (late int64, err error) {
	asked, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	r, err := s.client.Txn(asked).Then(clientv3.OpGet(s.keys.head()), clientv3.OpGet(s.keys.format()),
		clientv3.OpGet(s.keys.program())).Commit()
	if err != nil {
		s.health.suspect(err)
		return 0, fmt.Errorf("%w (%w)", store.ErrUnavailable, err)
	}
	s.health.recovered()
	if format := valueOf(r, 1); format != "" && format != strconv.Itoa(s.keys.version) {
		return 0, s.outdate(format, valueOf(r, 2))
	}
	at, value := s.place.mark()
	now := modRevisionOf(r, 0)
	switch {
	case now > at:
		return now, errLate
	case now < at || valueOf(r, 0) != value:
		return 0, s.wentBack(fmt.Errorf("the last write was at %d, and is at %d", at, now))
	}
	s.place.confirm(at, r.Header.Revision)
	return 0, nil
}

// write makes commits durable and returns the writing. replaces is set for new contents as a whole. The caller holds a
// transaction of the view.
func (s *Store) write(ctx context.Context, commits []*store.Commit, replaces bool) (*writing, error) {
	at, value := s.place.mark()
	w := &writing{store: s, expected: at, value: value, replaces: replaces}
	maxBytes := s.maxBytes
	if replaces {
		maxBytes = s.wholeBytes()
	}
	parts, err := s.cut(commits, maxBytes)
	if err != nil {
		return w, err
	}
	w.head = head{Revision: commits[len(commits)-1].Revision, Parts: len(parts), Writer: s.writer,
		Replaced: replacements(value)}
	if replaces && at > 0 {
		w.head.Replaced++
	}
	if len(parts) > 1 {
		if err := w.lock(ctx); err != nil {
			return w, err
		}
		defer w.unlock()
	}
	if err := w.probe(ctx, parts); err != nil {
		return w, err
	}
	for i, p := range parts {
		w.head.Part = i + 1
		if err := w.put(ctx, p); err != nil {
			return w, err
		}
		s.taken = max(s.taken, p.size)
	}
	return w, nil
}

// writing is one write in progress.
type writing struct {
	store *Store
	head  head
	// expected is head's etcd revision and value its content if no other server wrote.
	expected int64
	value    string
	lease    clientv3.LeaseID
	replaces bool
	// late is the etcd revision to wait for with errLate.
	late int64
}

// lock creates the lease for the writer key. The first part writes the key itself.
func (w *writing) lock(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.store.config.Timeout)
	defer cancel()
	granted, err := w.store.client.Grant(ctx, max(1, int64(w.store.config.WriterLease/time.Second)))
	if err != nil {
		return fmt.Errorf("%w (lease for a batch in %d parts: %w)", store.ErrUnavailable, w.head.Parts, err)
	}
	w.lease = granted.ID
	return nil
}

// unlock removes the writer key if the last part did not.
func (w *writing) unlock() {
	ctx, cancel := context.WithTimeout(context.Background(), w.store.config.Timeout)
	defer cancel()
	// If the request does not reach etcd, the lease expires.
	_, _ = w.store.client.Revoke(ctx, w.lease)
}

// put writes one part.
func (w *writing) put(ctx context.Context, p part) error {
	s := w.store
	w.head.follows(w.expected, w.value)
	value, err := w.head.encode()
	if err != nil {
		return err
	}
	ops := append(append(p.ops[:len(p.ops):len(p.ops)], clientv3.OpPut(s.keys.head(), value)), w.mark()...)
	conditions := []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(s.keys.head()), "=", w.expected),
		clientv3.Compare(clientv3.Value(s.keys.format()), "=", strconv.Itoa(s.keys.version)),
	}
	if w.expected > 0 { // a restored store may have reached the same revision by other writes
		conditions = append(conditions, clientv3.Compare(clientv3.Value(s.keys.head()), "=", w.value))
	}
	if w.head.Part == 1 {
		conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(s.keys.writer()), "=", 0))
		if w.lease != 0 {
			ops = append(ops, clientv3.OpPut(s.keys.writer(), s.writer, clientv3.WithLease(w.lease)))
		}
	} else {
		conditions = append(conditions, clientv3.Compare(clientv3.LeaseValue(s.keys.writer()), "=", int64(w.lease)))
		if w.head.whole() {
			ops = append(ops, clientv3.OpDelete(s.keys.writer()))
		} else if _, err := s.client.KeepAliveOnce(ctx, w.lease); err != nil {
			return w.lost(err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	r, err := s.client.Txn(ctx).If(conditions...).Then(ops...).
		Else(clientv3.OpGet(s.keys.head()), clientv3.OpGet(s.keys.format()), clientv3.OpGet(s.keys.program())).Commit()
	switch {
	case isTooLarge(err):
		return &oversize{p, err}
	case errors.Is(err, rpctypes.ErrNoSpace):
		s.health.fill(err)
		return fmt.Errorf("%w (%w)", store.ErrUnavailable, err)
	case isRefusal(err):
		return fmt.Errorf("%w (%w)", store.ErrUnavailable, err)
	case err != nil && w.arrived(ctx, value):
		return nil
	case err != nil:
		return w.lost(err)
	}
	s.health.recovered()
	if r.Succeeded {
		s.health.fill(nil)
		w.expected, w.value = r.Header.Revision, value
		return nil
	}
	if w.head.Part > 1 {
		return w.lost(errGone)
	}
	if format := valueOf(r, 1); format != "" && format != strconv.Itoa(s.keys.version) {
		return s.outdate(format, valueOf(r, 2))
	}
	w.late = modRevisionOf(r, 0)
	if w.late < w.expected || w.late == w.expected && w.expected > 0 && valueOf(r, 0) != w.value {
		return s.wentBack(fmt.Errorf("the last write was at %d, and is at %d", w.expected, w.late))
	}
	return errLate
}

// isRefusal reports whether etcd refused a transaction, as opposed to not answering.
func isRefusal(err error) bool {
	for _, refusal := range []error{rpctypes.ErrTooManyOps, rpctypes.ErrPermissionDenied, rpctypes.ErrAuthFailed,
		rpctypes.ErrUserEmpty} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}

// arrived reports, after a transaction without an answer, whether that transaction is the last that happened. It asks
// etcd, which has what is left of the transaction's time to answer, and lastQuestion.
func (w *writing) arrived(ctx context.Context, value string) bool {
	s := w.store
	until, _ := ctx.Deadline()
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), until.Add(lastQuestion))
	defer cancel()
	r, err := s.client.Get(ctx, s.keys.head())
	if err != nil || len(r.Kvs) == 0 || string(r.Kvs[0].Value) != value {
		return false
	}
	w.expected, w.value = r.Kvs[0].ModRevision, value
	return true
}

// lost returns the error for a write that may have happened completely, partly or not at all.
func (w *writing) lost(err error) error {
	if !errors.Is(err, errGone) {
		w.store.health.suspect(err)
	}
	return fmt.Errorf("%w: %w (part %d of %d: %w)", store.ErrUnavailable, store.ErrUncertain, w.head.Part,
		w.head.Parts, err)
}

// fail answers a group that was not written.
func (s *Store) fail(group []*store.Request, err error) {
	if !errors.Is(err, store.ErrUnavailable) {
		err = fmt.Errorf("%w (%w)", store.ErrUnavailable, err)
	}
	err = fmt.Errorf("etcd: %w", err)
	s.metrics.Failed()
	s.log.Error("store: write failed", "prefix", s.config.Prefix, "error", err)
	for _, r := range group {
		r.Answer(nil, err)
	}
}
