package etcd

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/causeway-mesh/causeway/resources/store"
)

// healthInterval is how often the cluster is asked whether it is there.
const healthInterval = time.Second

// health knows whether the cluster answers, so that writers need not wait to find out.
type health struct {
	mu sync.Mutex
	// away and final are guarded by mu. away is why the cluster does not answer, nil while it does; final is why this store
	// can never write again.
	away, final error
}

// err is nil while writes make sense.
func (h *health) err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.final != nil:
		return h.final
	case h.away != nil:
		return fmt.Errorf("%w (no answer: %w)", store.ErrUnavailable, h.away)
	}
	return nil
}

func (h *health) heard() (again bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	again = h.away != nil
	h.away = nil
	return again
}

func (h *health) suspect(err error) (first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	first = h.away == nil
	h.away = err
	return first
}

func (h *health) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.final = err
}

// Healthy returns nil while the cluster answers, and otherwise store.ErrUnavailable with what is wrong; ErrWentBack means
// that the server must be started again. It asks nobody, so it returns at once.
func (s *Store) Healthy() error { return s.health.err() }

// watchHealth asks for the head of the store, linearised, so that a member without a quorum counts as away.
func (s *Store) watchHealth(ctx context.Context) {
	ticker := time.NewTicker(healthInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		seen := s.place.seen()
		asked, cancel := context.WithTimeout(ctx, s.config.Timeout)
		r, err := s.client.Get(asked, s.keys.head(), clientv3.WithKeysOnly())
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if s.health.suspect(err) {
				s.log.Warn("store: etcd does not answer; reads go on, writes fail until it does", "endpoints", s.config.Endpoints, "error", err)
			}
		case r.Header.Revision < seen:
			err := fmt.Errorf("%w: it is at %d, and was at %d: %w: start this server again", ErrWentBack, r.Header.Revision, seen, store.ErrUnavailable)
			s.health.end(err)
			s.log.Error("store: "+err.Error(), "endpoints", s.config.Endpoints)
			return
		default:
			if s.health.heard() {
				s.log.Info("store: etcd answers again", "endpoints", s.config.Endpoints)
			}
		}
	}
}
