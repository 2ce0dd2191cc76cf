package xds

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// The maximum lag of a DataplaneInsight. Changes in between are written together.
const (
	soon  = 500 * time.Millisecond // connections, refusals, identities
	later = 10 * time.Second       // counts
)

// maxFlush is the largest number of insights written in one batch.
const maxFlush = 256

// insights writes what the server observes of the proxies to the status store, as DataplaneInsights.
type insights struct {
	status store.Store
	home   resources.Home
	log    *slog.Logger
	now    func() time.Time
	wake   chan struct{}

	mu      sync.Mutex
	records map[resources.Key]*record // guarded by mu: records of connected proxies and those not yet written
	dirty   map[*record]struct{}      // guarded by mu
	due     time.Time                 // guarded by mu: time of the next write; zero while nothing is dirty
}

func newInsights(cfg *Config) *insights {
	return &insights{
		status: cfg.Status, home: cfg.Home, log: cfg.Log, now: cfg.Now, wake: make(chan struct{}, 1),
		records: map[resources.Key]*record{}, dirty: map[*record]struct{}{},
	}
}

// open returns the record of a Dataplane's proxy: the one still in memory, or one restored from the status store.
func (x *insights) open(dataplane resources.Key) *record {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := insightKey(dataplane)
	r := x.records[key]
	if r == nil {
		r = &record{key: key, requests: newRequestRate()}
		if x.status != nil {
			r.restore(x.status.Snapshot().Get(key))
		}
		x.records[key] = r
	}
	r.open++
	return r
}

// close ends a proxy's use of its record. The record stays until it is written.
func (x *insights) close(r *record) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r.open--
	x.releaseLocked(r)
}

func (x *insights) releaseLocked(r *record) {
	if _, dirty := x.dirty[r]; !dirty && r.open == 0 {
		delete(x.records, r.key)
	}
}

// mark schedules a write of r within the given time.
func (x *insights) mark(r *record, within time.Duration) {
	if x.status == nil {
		return
	}
	x.mu.Lock()
	x.dirty[r] = struct{}{}
	due := x.now().Add(within)
	earlier := x.due.IsZero() || due.Before(x.due)
	if earlier {
		x.due = due
	}
	x.mu.Unlock()
	if earlier {
		select {
		case x.wake <- struct{}{}:
		default:
		}
	}
}

// forget removes the insight of a Dataplane that was deleted.
func (x *insights) forget(dataplane resources.Key) {
	if x.status == nil {
		return
	}
	x.mu.Lock()
	r := x.records[insightKey(dataplane)]
	x.mu.Unlock()
	if r != nil { // a write of it may be in progress: the removal waits for it
		r.setDataplane(false)
		x.mark(r, soon)
		return
	}
	if _, err := x.status.Apply(context.Background(),
		store.Batch{Ops: []store.Op{{Delete: insightKey(dataplane)}}}); err != nil {
		x.log.Warn("cannot remove the insight of a deleted dataplane", "mesh", dataplane.Mesh, "name", dataplane.Name,
			"error", err)
	}
}

func insightKey(dataplane resources.Key) resources.Key {
	dataplane.Type = resources.TypeDataplaneInsight
	return dataplane
}

// run writes until ctx ends, and then once more.
func (x *insights) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		x.mu.Lock()
		due := x.due
		x.mu.Unlock()
		var fire <-chan time.Time
		if !due.IsZero() {
			timer.Reset(max(due.Sub(x.now()), 0))
			fire = timer.C
		}
		select {
		case <-ctx.Done():
			x.flush(context.WithoutCancel(ctx))
			return
		case <-x.wake:
		case <-fire:
			x.flush(context.WithoutCancel(ctx)) // in memory and short: a flush that has begun completes
		}
	}
}

// flush writes all dirty records, in batches.
func (x *insights) flush(ctx context.Context) {
	x.mu.Lock()
	dirty := x.dirty
	x.dirty, x.due = map[*record]struct{}{}, time.Time{}
	x.mu.Unlock()
	var batch store.Batch
	var wrote []func(revision uint64)
	write := func() {
		if _, err := x.status.Apply(ctx, batch); err != nil {
			x.log.Warn("cannot write insights", "error", err)
		} else {
			for _, one := range wrote {
				one(x.status.Snapshot().Revision())
			}
		}
		batch.Ops, wrote = nil, nil
	}
	for r := range dirty {
		out, done, err := r.write(x.home)
		if err != nil {
			x.log.Warn("cannot write an insight", "mesh", r.key.Mesh, "name", r.key.Name, "error", err)
			continue
		}
		wrote = append(wrote, done)
		if batch.Ops = append(batch.Ops, out); len(batch.Ops) == maxFlush {
			write()
		}
	}
	if len(batch.Ops) > 0 {
		write()
	}
	x.mu.Lock()
	for r := range dirty {
		x.releaseLocked(r)
	}
	x.mu.Unlock()
}
