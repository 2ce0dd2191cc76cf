package xds

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// renewalLook limits each wait, because the clock may be set.
const renewalLook = 5 * time.Second

// renewals calls back when an identity is due by the wall clock, which verifiers use too: one timer serves all proxies.
// If the clock was set back, all renewals planned at a later time are due: what was signed then may not be valid for
// long.
type renewals struct {
	now  func() time.Time
	due  func(*proxy)
	wake chan struct{}

	mu     sync.Mutex
	heap   renewalHeap         // guarded by mu
	of     map[*proxy]*renewal // guarded by mu
	looked time.Time           // guarded by mu: the clock's last reading
}

// renewal is one proxy's renewal: its due time, and the time at which it was planned, both from the wall clock.
type renewal struct {
	proxy       *proxy
	at, planned time.Time
	index       int
}

func newRenewals(now func() time.Time, due func(*proxy)) *renewals {
	return &renewals{now: now, due: due, wake: make(chan struct{}, 1), of: map[*proxy]*renewal{}}
}

// plan sets when a proxy's identity is due, and replaces an earlier plan. planned is the clock's reading at the
// computation: the clock may have been set since.
func (r *renewals) plan(p *proxy, at, planned time.Time) {
	at, planned = at.Round(0), planned.Round(0)
	r.mu.Lock()
	if planned.After(r.looked) {
		r.looked = planned // the clock may be set back before the next look
	}
	if e := r.of[p]; e != nil {
		e.at, e.planned = at, planned
		heap.Fix(&r.heap, e.index)
	} else {
		e = &renewal{proxy: p, at: at, planned: planned}
		r.of[p] = e
		heap.Push(&r.heap, e)
	}
	first := r.heap[0].proxy == p
	r.mu.Unlock()
	if first {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// cancel removes a proxy's plan.
func (r *renewals) cancel(p *proxy) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.of[p]; e != nil {
		heap.Remove(&r.heap, e.index)
		delete(r.of, p)
	}
}

// next removes and returns the earliest proxy that is due; otherwise it returns how long to wait, negative if nothing
// is planned.
func (r *renewals) next() (p *proxy, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.heap) == 0 {
		return nil, -1
	}
	now := r.now().Round(0)
	if now.Before(r.looked) {
		r.setBackLocked(now)
	}
	r.looked = now
	if wait := r.heap[0].at.Sub(now); wait > 0 {
		return nil, min(wait, renewalLook)
	}
	e := heap.Pop(&r.heap).(*renewal)
	delete(r.of, e.proxy)
	return e.proxy, 0
}

// setBackLocked makes renewals due that were planned at a time in the future.
func (r *renewals) setBackLocked(now time.Time) {
	for _, e := range r.heap {
		if e.planned.After(now) {
			e.at, e.planned = now, now
		}
	}
	heap.Init(&r.heap)
}

func (r *renewals) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		p, wait := r.next()
		if p != nil {
			r.due(p)
			continue
		}
		var due <-chan time.Time
		if wait >= 0 {
			timer.Reset(wait)
			due = timer.C
		}
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-due:
		}
	}
}

type renewalHeap []*renewal

func (h renewalHeap) Len() int           { return len(h) }
func (h renewalHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h renewalHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push and Pop implement container/heap.
func (h *renewalHeap) Push(e any) {
	e.(*renewal).index = len(*h)
	*h = append(*h, e.(*renewal))
}

func (h *renewalHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
