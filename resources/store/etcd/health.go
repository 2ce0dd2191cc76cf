package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/causeway-mesh/causeway/resources/store"
)

// healthInterval is how often the store checks that the cluster answers.
const healthInterval = time.Second

// health records whether the cluster answers and whether the view is current, so that writers need not wait to find
// out.
type health struct {
	mu sync.Mutex
	// mu guards all fields. away is why the cluster does not answer, since lost, nil while it does. final is why this
	// store can never write again. full is why the cluster refuses writes although it answers, since filled.
	away, final, full error
	lost, filled      time.Time
	// behind is the etcd revision of a write that the view does not show, first missed at since; 0 if the view shows
	// all.
	behind int64
	since  time.Time
	// stale reports that behind is too old for any watch to deliver it; rewatch ends the watch.
	stale   bool
	rewatch context.CancelFunc
}

// err returns nil while writes can succeed.
func (h *health) err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.final != nil:
		return h.final
	case h.away != nil:
		return fmt.Errorf("%w (no answer since %s: %w)", store.ErrUnavailable, h.lost.UTC().Format(time.RFC3339), h.away)
	}
	return nil
}

// room returns why etcd refuses writes although it answers, with since when; nil while it has room.
func (h *health) room() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.full == nil {
		return nil
	}
	return fmt.Errorf("%w (etcd answers, and refuses writes since %s: %w)", store.ErrUnavailable,
		h.filled.UTC().Format(time.RFC3339), h.full)
}

// current is like err, but returns nil only while the view is current.
func (h *health) current() error {
	if err := h.err(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stale {
		return fmt.Errorf("%w: etcd has a write at %d that has not come here since %s: what is shown is older",
			store.ErrUnavailable, h.behind, h.since.UTC().Format(time.RFC3339))
	}
	return nil
}

func (h *health) recovered() (again bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	again = h.away != nil
	h.away = nil
	return again
}

func (h *health) suspect(err error) (first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if first = h.away == nil; first {
		h.lost = time.Now()
	}
	h.away = err
	return first
}

func (h *health) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.final = err
}

// fill records why etcd has no room; nil records that it has. It reports whether that is new.
func (h *health) fill(err error) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	changed = (h.full == nil) != (err == nil)
	if changed {
		h.filled = time.Now()
	}
	h.full = err
	return changed
}

// watching records how to end the current watch.
func (h *health) watching(cancel context.CancelFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rewatch = cancel
}

// compared records that etcd's last write is at now and the view's at seen. If a write is missing for longer than
// patience, it ends the watch, so that everything is compared.
func (h *health) compared(seen, now int64, patience time.Duration, at time.Time) (stale bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case seen >= now, h.behind == 0, seen >= h.behind:
		h.behind, h.stale = 0, false
		if seen < now {
			h.behind, h.since = now, at
		}
		return false
	case at.Sub(h.since) < patience:
		return false
	}
	stale = !h.stale
	h.stale = true
	if h.rewatch != nil {
		h.rewatch()
	}
	return stale
}

func (h *health) isBehind() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stale
}

// caughtUp records that everything was compared.
func (h *health) caughtUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.behind, h.stale = 0, false
}

// Healthy returns nil while the cluster answers and accepts writes and the view shows all of them; otherwise
// store.ErrUnavailable with the problem. ErrWentBack and ErrReplaced mean that the server must restart. It sends no request, so it
// returns at once.
func (s *Store) Healthy() error { return cmp.Or(s.Current(), s.health.room()) }

// Current is like Healthy, but does not ask that the cluster accepts writes: what is read is current although etcd is
// full.
func (s *Store) Current() error { return s.health.current() }

// watchHealth reads the head of the store, linearised, so that a member without a quorum counts as away.
func (s *Store) watchHealth(ctx context.Context) {
	ticker := time.NewTicker(healthInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !s.look(ctx) {
			return
		}
		s.lookForRoom(ctx)
	}
}

// look compares the head of the store with the view. It returns false if there is nothing more to watch for.
func (s *Store) look(ctx context.Context) bool {
	at, value := s.place.mark()
	asked, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	r, err := s.client.Txn(asked).Then(clientv3.OpGet(s.keys.head()), clientv3.OpGet(s.keys.format())).Commit()
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		if s.health.suspect(err) {
			s.log.Warn("store: etcd does not answer; reads continue, writes fail until it does", "endpoints",
				s.config.Endpoints, "error", err)
		}
		return true
	}
	now := modRevisionOf(r, 0)
	if s.place.isElsewhere(r.Header.GetClusterId()) {
		_ = s.wentBack(fmt.Errorf("it is another cluster, %x", r.Header.GetClusterId()))
		return false
	}
	if r.Header.Revision < at || now < at || now == at && valueOf(r, 0) != value {
		_ = s.wentBack(fmt.Errorf("it is at %d, and was at %d", r.Header.Revision, at))
		return false
	}
	if now == at && valueOf(r, 1) == strconv.Itoa(s.keys.version) {
		s.place.confirm(at, r.Header.Revision)
	}
	// A batch in parts may take as long as its writer's lease to arrive or to be abandoned.
	if s.health.compared(s.place.seen(), now, s.config.Timeout+2*s.config.WriterLease, time.Now()) {
		s.log.Error("store: etcd has writes that the watch did not deliver: comparing everything", "endpoints",
			s.config.Endpoints, "revision", now)
	}
	if s.health.recovered() {
		s.log.Info("store: etcd answers again", "endpoints", s.config.Endpoints)
	}
	return true
}

// lookForRoom checks whether etcd refuses writes, so that a server that writes nothing knows it too. The member that is
// asked answers from its memory. If etcd denies this user the answer, it is assumed to have room until it refuses again.
func (s *Store) lookForRoom(ctx context.Context) {
	asked, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	status, err := etcdserverpb.NewMaintenanceClient(s.client.ActiveConnection()).Status(asked,
		&etcdserverpb.StatusRequest{})
	var full error
	switch {
	case err != nil && !isRefusal(rpctypes.Error(err)):
		return
	case err == nil && slices.ContainsFunc(status.GetErrors(), isNoSpace):
		full = rpctypes.ErrNoSpace
	}
	switch changed := s.health.fill(full); {
	case changed && full != nil:
		s.log.Warn("store: etcd has no room; reads continue, writes fail until it has", "endpoints", s.config.Endpoints,
			"error", full)
	case changed:
		s.log.Info("store: etcd has room again", "endpoints", s.config.Endpoints)
	}
}

// isNoSpace reports whether a line of etcd's status is the alarm that its quota is exhausted.
func isNoSpace(line string) bool {
	return strings.Contains(line, etcdserverpb.AlarmType_NOSPACE.String())
}

// wentBack ends writing and following permanently: this is not the store that was followed, as after a restore.
func (s *Store) wentBack(why error) error { return s.ended(ErrWentBack, why) }

// ended ends writing and following permanently.
func (s *Store) ended(reason, why error) error {
	err := fmt.Errorf("%w: %w: %w: start this server again", reason, why, store.ErrUnavailable)
	s.health.end(err)
	s.log.Error("store: "+err.Error(), "endpoints", s.config.Endpoints)
	return err
}

// recognise checks, before a watch continues, that the store still has the write that the view shows, at the same
// revision. A store that was restored meanwhile may have reached a later revision by other writes. If etcd has
// compacted that revision, the chain tells. Errors: ErrWentBack, and etcd's.
func (s *Store) recognise(ctx context.Context) error {
	at, value := s.place.mark()
	if at == 0 {
		return nil
	}
	asked, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	r, err := s.client.Get(asked, s.keys.head(), clientv3.WithRev(at))
	switch {
	case errors.Is(err, rpctypes.ErrFutureRev):
		return s.wentBack(fmt.Errorf("it has not come to %d, where it was", at))
	case errors.Is(err, rpctypes.ErrCompacted):
		is, known, err := s.chained(asked, at, digestOf(value))
		if err == nil && known && !is {
			return s.wentBack(fmt.Errorf("what it had at %d is not what it had here", at))
		}
		return err // the watch finds the history compacted, and everything is compared
	case err != nil:
		return err
	case len(r.Kvs) == 0 || r.Kvs[0].ModRevision != at || string(r.Kvs[0].Value) != value:
		return s.wentBack(fmt.Errorf("what it has of %d is not what it had", at))
	}
	return nil
}
