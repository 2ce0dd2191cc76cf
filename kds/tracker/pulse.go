package tracker

import (
	"sync"
	"sync/atomic"
)

// Pulse wakes those who wait for a change of the sync with one peer. A beat that nobody waits for costs one atomic read. A nil
// *Pulse wakes nobody; the zero value is ready. Safe for concurrent use.
type Pulse struct {
	waiting atomic.Int64
	mu      sync.Mutex
	next    chan struct{} // guarded by mu: closed at the next beat; nil while nobody waits
}

// Beat tells of a change, after it.
func (p *Pulse) Beat() {
	if p == nil || p.waiting.Load() == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next != nil {
		close(p.next)
		p.next = nil
	}
}

// Wait begins to wait, until end: each change after Wait closes a channel that next returned before it. The caller looks at
// the state after next, so that it misses nothing, and must call end.
func (p *Pulse) Wait() (next func() <-chan struct{}, end func()) {
	p.waiting.Add(1)
	return func() <-chan struct{} {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.next == nil {
			p.next = make(chan struct{})
		}
		return p.next
	}, func() { p.waiting.Add(-1) }
}
