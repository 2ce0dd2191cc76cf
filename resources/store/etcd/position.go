package etcd

import (
	"context"
	"sync"
)

// position is the position of the view in etcd: the write of head that the view shows.
type position struct {
	mu sync.Mutex
	// at, value, confirmed and moved are guarded by mu. at is the etcd revision of the write, value what it left in
	// head; both change only within a transaction of the view. confirmed is an etcd revision up to which there is no
	// later write.
	at        int64
	value     string
	confirmed int64
	// passed are the writes up to at; guarded by mu.
	passed passed
	// moved is closed when at increases.
	moved chan struct{}
	// next is where following begins, and cluster the id of etcd's cluster; they are set before.
	next    int64
	cluster uint64
}

// isElsewhere reports whether a cluster is not the one that was loaded.
func (p *position) isElsewhere(cluster uint64) bool { return p.cluster != cluster }

func (p *position) seen() int64 {
	at, _ := p.mark()
	return at
}

// mark returns the write that the view shows. A store with another write at this revision is not the one that was
// followed.
func (p *position) mark() (at int64, value string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at, p.value
}

// move advances to the next write.
func (p *position) move(at int64, value string) { p.to(at, value, true) }

// leap goes to a write before which there may be others that were not seen.
func (p *position) leap(at int64, value string) { p.to(at, value, false) }

func (p *position) to(at int64, value string, follows bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at == p.at {
		return
	}
	p.at, p.value = at, value
	p.passed.add(at, value, follows)
	close(p.moved)
	p.moved = make(chan struct{})
}

// had reports whether the view went through a write with the digest at the revision; known is false if it cannot tell.
func (p *position) had(at int64, digest string) (is, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed.has(at, digest)
}

// since returns the writes that the view went through after one. joined reports that no other is in between.
func (p *position) since(at int64) (more passed, joined bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed.since(at)
}

// confirm records that at etcd's revision now, the write at was still the last one.
func (p *position) confirm(at, now int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at == p.at {
		p.confirmed = max(p.confirmed, now)
	}
}

// from returns the revision to watch from. next is the first revision without an event so far; the result is later if
// it is confirmed that there are no events in between.
func (p *position) from(next int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(next, p.confirmed+1)
}

// wait returns once the view shows the write at the etcd revision, or a later one.
func (p *position) wait(ctx context.Context, at int64) error {
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
