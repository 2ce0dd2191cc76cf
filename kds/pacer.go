package kds

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/causeway-mesh/causeway/resources/store"
)

// Bounds of the pause between two waves while changes come faster than the zones answer.
const (
	shortestPause = 4 * time.Millisecond
	longestPause  = 32 * time.Millisecond
)

// Senders are woken a few at a time: between them the server comes to answer requests and to take acknowledgements, so that
// in a burst the next change is stored, and goes along, while the one before it is still going out.
const (
	sendersAtOnce = 16
	// longestTurn is how long the next few wait for these.
	longestTurn = 2 * time.Millisecond
)

// pace tells a sender when to look at the store again.
type pace interface {
	// next returns a channel on which something comes, or that is closed, when there is something new, and the number of
	// the wave before it.
	next() (wave uint64, news <-chan struct{})
	// looked says that the stream has sent what it saw.
	looked()
	// settled says that the stream has got answered all that it saw after the wave.
	settled(wave uint64)
}

// unpaced wakes its stream at every commit: for a server with one stream, whose peer's answers are the clock.
type unpaced struct{ store store.Reader }

func (u unpaced) next() (uint64, <-chan struct{}) {
	_, changed := u.store.Changed()
	return 0, changed
}

func (unpaced) looked() {}

func (unpaced) settled(uint64) {}

// pacer wakes all streams of a server, in waves. The first change goes out at once. One that was written before most
// streams were done with the wave before it waits for a pause that grows while this goes on: so in a burst each message
// carries several changes, and a stream that is slow or stuck holds up nobody. Safe for concurrent use.
type pacer struct {
	store store.Reader

	mu       sync.Mutex
	wave     uint64        // guarded by mu
	streams  []*paced      // guarded by mu
	finished int           // guarded by mu: streams that settled the current wave
	done     time.Time     // guarded by mu: when most had; zero before
	stop     chan struct{} // guarded by mu: ends run; nil without streams
}

// paced is the pace of one stream.
type paced struct {
	pacer *pacer
	news  chan struct{} // has room for one
	turn  atomic.Pointer[turnOfSome]
}

// turnOfSome are streams that were woken together.
type turnOfSome struct {
	left atomic.Int32
	done chan struct{}
}

func newPacer(s store.Reader) *pacer { return &pacer{store: s} }

// enter takes a stream in; the first starts run by start. Each stream that entered must leave.
func (p *pacer) enter(start func(run func())) *paced {
	s := &paced{pacer: p, news: make(chan struct{}, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.streams = append(p.streams, s)
	if p.stop == nil {
		stop := make(chan struct{})
		p.stop = stop
		_, changed := p.store.Changed()
		start(func() { p.run(changed, stop) })
	}
	return s
}

func (s *paced) leave() {
	s.looked()
	p := s.pacer
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.streams, s)
	p.streams = slices.Delete(p.streams, i, i+1)
	if len(p.streams) == 0 {
		close(p.stop)
		p.stop = nil
	}
}

func (s *paced) next() (uint64, <-chan struct{}) {
	s.pacer.mu.Lock()
	defer s.pacer.mu.Unlock()
	return s.pacer.wave, s.news
}

func (s *paced) looked() {
	if turn := s.turn.Swap(nil); turn != nil && turn.left.Add(-1) == 0 {
		close(turn.done)
	}
}

func (s *paced) settled(wave uint64) {
	p := s.pacer
	p.mu.Lock()
	defer p.mu.Unlock()
	if wave != p.wave {
		return
	}
	if p.finished++; p.done.IsZero() && p.finished*2 >= len(p.streams) {
		p.done = time.Now()
	}
}

// busy reports whether most streams were still at work on the current wave when something was written. Whether they still are
// says less: in a burst, storing a change takes about as long as the wave beside it.
func (p *pacer) busy(written time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wave > 0 && len(p.streams) > 1 && (p.done.IsZero() || written.Before(p.done))
}

// run turns commits into waves until stop is closed. changed is closed by the first commit that nobody looked at yet.
func (p *pacer) run(changed <-chan struct{}, stop <-chan struct{}) {
	var pause time.Duration
	var streams []*paced
	seen := p.store.Snapshot().Revision()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-changed:
		case <-stop:
			return
		}
		if !p.busy(firstAfter(p.store, seen)) {
			pause = 0
		} else {
			pause = min(max(2*pause, shortestPause), longestPause)
			timer.Reset(pause)
			select {
			case <-timer.C:
			case <-stop:
				return
			}
		}
		_, changed = p.store.Changed()
		seen = p.store.Snapshot().Revision()
		streams = p.begin(streams[:0])
		for some := range slices.Chunk(streams, sendersAtOnce) {
			turn := wake(some)
			if &some[len(some)-1] == &streams[len(streams)-1] {
				break // nobody waits for the last ones
			}
			timer.Reset(longestTurn)
			select {
			case <-turn.done:
			case <-timer.C:
			case <-stop:
				return
			}
		}
	}
}

// firstAfter is when the first commit after a revision was written; now, when the changelog does not reach back so far.
func firstAfter(s store.Reader, revision uint64) time.Time {
	if commits, ok := s.Changes(revision); ok && len(commits) > 0 && !commits[0].Cause.Written.IsZero() {
		return commits[0].Cause.Written
	}
	return time.Now()
}

// begin begins a wave and appends its streams to list.
func (p *pacer) begin(list []*paced) []*paced {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished, p.done = 0, time.Time{}
	p.wave++
	return append(list, p.streams...)
}

func wake(some []*paced) *turnOfSome {
	turn := &turnOfSome{done: make(chan struct{})}
	turn.left.Store(int32(len(some)))
	for _, s := range some {
		s.turn.Store(turn)
		select {
		case s.news <- struct{}{}:
		default: // it has not come to look yet
		}
	}
	return turn
}
