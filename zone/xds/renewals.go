package xds

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// renewalLook bounds a wait by the clock, which may be set.
const renewalLook = 5 * time.Second

// renewals call back when an identity is due by the wall clock, as its verifiers go by theirs: one timer for all proxies. When the clock
// was set back, all that were planned by what it said before are due: what was signed then may not be valid for long.
type renewals struct {
	now  func() time.Time
	due  func(*proxy)
	wake chan struct{}

	mu     sync.Mutex
	heap   renewalHeap         // guarded by mu
	of     map[*proxy]*renewal // guarded by mu
	looked time.Time           // guarded by mu: what the clock said last
}

// renewal is one proxy's: due at a time, and planned when the clock said so. Both are of the wall clock alone.
type renewal struct {
	proxy       *proxy
	at, planned time.Time
	index       int
}

func newRenewals(now func() time.Time, due func(*proxy)) *renewals {
	return &renewals{now: now, due: due, wake: make(chan struct{}, 1), of: map[*proxy]*renewal{}}
}

// plan sets when a proxy's identity is due, in place of what was planned before, and what the clock said when that was found: it may have
// been set since.
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

// cancel forgets a proxy.
func (r *renewals) cancel(p *proxy) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.of[p]; e != nil {
		heap.Remove(&r.heap, e.index)
		delete(r.of, p)
	}
}

// next takes the earliest proxy that is due; otherwise it says how long to wait, negative for as long as nothing is planned.
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

// setBackLocked makes due what was planned at a time that has not come.
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

// Push and Pop are container/heap's.
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
