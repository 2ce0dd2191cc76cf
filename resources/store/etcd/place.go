package etcd

import (
	"context"
	"sync"
)

// place is how far the view has come in etcd: the revision of etcd at which head was last changed by a write that the view
// shows.
type place struct {
	mu sync.Mutex
	// at and moved, which is closed when at grows, are guarded by mu. at changes only within a transaction of the view.
	at    int64
	moved chan struct{}
	// next is where following begins; it is set before.
	next int64
}

func (p *place) seen() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

func (p *place) move(at int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at == p.at {
		return
	}
	p.at = at
	close(p.moved)
	p.moved = make(chan struct{})
}

// wait returns when the view shows the write at the etcd revision, or a later one.
func (p *place) wait(ctx context.Context, at int64) error {
	for {
		p.mu.Lock()
		seen, moved := p.at, p.moved
		p.mu.Unlock()
		if seen >= at {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
