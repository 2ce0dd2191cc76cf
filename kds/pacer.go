package kds

import (
	"slices"
	"sync"
	"time"

	"github.com/causeway-mesh/causeway/resources/store"
)

// Limits of the pause between two flushes while changes arrive faster than the zones answer.
const (
	shortestPause = 4 * time.Millisecond
	longestPause  = 40 * time.Millisecond
)

// flushLimit is the time after which a flush counts as done: if most zones are stuck, the others wait only for writes in
// close succession.
const flushLimit = 256 * time.Millisecond

// pace tells senders when to look at the store again.
type pace interface {
	// next returns the number of the last flush, and a channel that the next flush closes; nil if streams are notified by
	// notify.
	next() (flush uint64, news <-chan struct{})
	// flushed reports that a stream has sent, and got answered, all that it saw after the flush.
	flushed(stream watcher, flush uint64)
}

// unpaced wakes its stream at every commit, so a flush is a revision: for a server with one stream, whose peer's answers
// set the pace.
type unpaced struct{ store store.Reader }

func (u unpaced) next() (uint64, <-chan struct{}) { return u.store.Changed() }

func (unpaced) flushed(watcher, uint64) {}

// watcher is a stream that is notified of flushes. Neither function may block.
type watcher interface {
	notify()
	// reconsider is notify outside a flush, after a commit that concerns nothing but the stream's own zone.
	reconsider()
}

// pacer notifies all streams of a server of news together, in flushes. The first change goes out at once. A change that
// was written before most streams were done with the previous flush waits for a pause, which grows while this continues:
// in a burst each message carries several changes, and a slow or stuck stream delays no other. Bookkeeping begins no
// flush: only the streams of the zones that it is about are told. Safe for concurrent use.
type pacer struct {
	store store.Reader

	mu       sync.Mutex
	flush    uint64           // guarded by mu
	streams  map[watcher]bool // guarded by mu: whether it is done with the current flush
	zones    zoneStreams      // guarded by mu
	finished int              // guarded by mu: the number of streams that have
	began    time.Time        // guarded by mu: when the current flush began
	done     time.Time        // guarded by mu: when most had; zero before
	stop     chan struct{}    // guarded by mu: ends run; nil without streams
}

func newPacer(s store.Reader) *pacer {
	return &pacer{store: s, streams: map[watcher]bool{}, zones: zoneStreams{}}
}

// enter adds a stream to a zone; the first one starts run by start. Each stream that entered must leave.
func (p *pacer) enter(zone string, stream watcher, start func(run func())) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams[stream] = false
	p.zones.add(zone, stream)
	if p.stop == nil {
		stop := make(chan struct{})
		p.stop = stop
		seen, changed := p.store.Changed()
		start(func() { p.run(seen, changed, stop) })
	}
}

func (p *pacer) leave(zone string, stream watcher) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.zones.remove(zone, stream)
	if p.streams[stream] {
		p.finished--
	}
	if delete(p.streams, stream); len(p.streams) == 0 {
		close(p.stop)
		p.stop = nil
		return
	}
	p.note()
}

func (p *pacer) next() (uint64, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.flush, nil
}

func (p *pacer) flushed(stream watcher, flush uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	settled, here := p.streams[stream]
	if flush != p.flush || settled || !here {
		return
	}
	p.streams[stream] = true
	p.finished++
	p.note()
}

// note records the time at which most of the current streams are done with the flush. The caller holds p.mu.
func (p *pacer) note() {
	if p.done.IsZero() && p.finished*2 >= len(p.streams) {
		p.done = time.Now()
	}
}

// busy reports whether most streams were still at work on the current flush at the time of a write. Whether they still
// are matters less: in a burst, storing a change takes about as long as the concurrent flush.
func (p *pacer) busy(written time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flush == 0 || len(p.streams) < 2 || written.Sub(p.began) > flushLimit {
		return false
	}
	return p.done.IsZero() || written.Before(p.done)
}

// run turns the commits after seen into flushes until stop is closed. changed is closed by the first of them.
func (p *pacer) run(seen uint64, changed <-chan struct{}, stop <-chan struct{}) {
	var pause time.Duration
	var streams []watcher // used again for each flush
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-changed:
		case <-stop:
			return
		}
		if now, next := p.store.Changed(); p.notifyOnly(seen) {
			seen, changed = now, next
			continue
		}
		if !p.busy(firstAfter(p.store, seen)) {
			pause /= 2 // not to zero: now and then a write of a burst falls behind a flush
		} else {
			pause = min(max(2*pause, shortestPause), longestPause)
			timer.Reset(pause)
			select {
			case <-timer.C:
			case <-stop:
				return
			}
		}
		seen, changed = p.store.Changed()
		streams = p.begin(streams)
		for _, stream := range streams {
			stream.notify()
		}
		clear(streams) // those that leave are kept by nothing
		streams = streams[:0]
	}
}

// begin begins a flush and appends the streams to notify to to.
func (p *pacer) begin(to []watcher) []watcher {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flush++
	p.finished, p.began, p.done = 0, time.Now(), time.Time{}
	to = slices.Grow(to, len(p.streams))
	for stream := range p.streams {
		p.streams[stream] = false
		to = append(to, stream)
	}
	return to
}

// firstAfter returns the time of the first commit after a revision, or now if the changelog does not reach back so far.
func firstAfter(s store.Reader, revision uint64) time.Time {
	if commits, ok := s.Changes(revision); ok && len(commits) > 0 && !commits[0].Cause.Written.IsZero() {
		return commits[0].Cause.Written
	}
	return time.Now()
}
