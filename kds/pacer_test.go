package kds

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/mem"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// heard is a stream that records that it was notified of a flush.
type heard chan struct{}

func (h heard) notify() {
	select {
	case h <- struct{}{}:
	default:
	}
}

func (h heard) reconsider() { h.notify() }

// TestWaves checks that the first change goes out at once; that later ones share flushes while most streams are still at
// work on it; that no change is left behind; and that streams that are done are again woken at once.
func TestWaves(t *testing.T) {
	t.Parallel()
	s := store.NewMemory()
	p := newPacer(s)
	var running sync.WaitGroup
	var streams [4]heard
	for i := range streams {
		streams[i] = make(heard, 1)
		p.enter(fmt.Sprint("zone-", i), streams[i], running.Go)
	}
	news := streams[0]
	write := func(i int) uint64 {
		key, spec := permission(fmt.Sprintf("p%d", i))
		return put(t, s, written(t, globalHome, key, spec))
	}
	before, _ := p.next()
	write(0)
	<-news
	first, _ := p.next()
	if first != before+1 {
		t.Fatalf("flush %d after %d", first, before)
	}
	// No stream settles: a burst.
	var last uint64
	began := time.Now()
	for i := range 200 {
		last = write(i + 1)
	}
	took := time.Since(began)
	eventually(t, "a flush after the last write", func() bool {
		flush, _ := p.next()
		select {
		case <-news:
		case <-time.After(2 * longestPause):
			return s.Snapshot().Revision() == last && flush > first
		}
		return false
	})
	flush, _ := p.next()
	if most := uint64(took/shortestPause) + 3; flush-first > most {
		t.Errorf("200 writes in %s made %d flushes", took, flush-first)
	}
	// One stuck stream of four delays no other.
	for _, stream := range streams[:3] {
		p.flushed(stream, flush)
	}
	began = time.Now()
	if p.busy(began) {
		t.Error("three of four streams are done, and a change written after that waits")
	}
	if !p.busy(began.Add(-time.Minute)) {
		t.Error("a change that was written while they were at work does not wait")
	}
	write(999)
	<-news
	if !p.busy(began) { // the new flush has just begun
		t.Errorf("streams count as done with a flush that began %s ago", time.Since(began))
	}
	if p.busy(time.Now().Add(2 * flushLimit)) {
		t.Error("streams that are stuck hold up a change that is written long after the flush")
	}
	for i, stream := range streams {
		p.leave(fmt.Sprint("zone-", i), stream)
	}
	running.Wait()
}

func TestZonesThatAreSentTheSameShareIt(t *testing.T) {
	t.Parallel()
	b := newPayloads()
	var list []*encoded
	for i := range 2 * joinedFrom {
		raw := mem.SliceBuffer(fmt.Sprintf("resource-%d", i))
		e := &encoded{size: len(raw)}
		e.raw.Store(&raw)
		list = append(list, e)
	}
	key := payloadKey{typ: resources.TypeMesh}
	build := func(from []*encoded) *payload {
		built := b.borrow()
		*built = append(*built, from...)
		return b.share(key, built, false)
	}
	first, again, other, small := build(list), build(list), build(list[1:]), build(list[:2])
	if first != again || first == other {
		t.Error("equal lists are not shared, or different ones are")
	}
	if later := build(list); later != first || build(list[1:]) != other {
		t.Error("streams at different messages of a list do not share each")
	}
	if small.buffer != nil || len(small.resources) != 2 {
		t.Errorf("a small one: %d resources, joined %v", len(small.resources), small.buffer != nil)
	}
	size := 0
	for _, e := range list {
		size += e.size
	}
	if first.buffer.Len() != size {
		t.Errorf("joined to %d bytes, want %d", first.buffer.Len(), size)
	}
}

// TestLeavingTakesItsAnswerAlong checks that only current streams count as done. One that was done and left does not
// stand for one at work, and one that was stuck and left delays no other.
func TestLeavingTakesItsAnswerAlong(t *testing.T) {
	t.Parallel()
	p := newPacer(store.NewMemory())
	var running sync.WaitGroup
	var streams [6]heard
	for i := range streams {
		streams[i] = make(heard, 1)
		p.enter(fmt.Sprint("zone-", i), streams[i], running.Go)
	}
	p.begin(nil)
	for i, done := range streams[:2] {
		p.flushed(done, 1)
		p.flushed(done, 1) // a second time changes nothing
		p.leave(fmt.Sprint("zone-", i), done)
	}
	p.flushed(streams[2], 1)
	if !p.busy(time.Now()) {
		t.Error("one of four streams is done, and they count as done")
	}
	p.leave("zone-5", streams[5])
	p.leave("zone-4", streams[4]) // one of two is done
	if p.busy(time.Now()) {
		t.Error("half of the streams are done, and what is written now waits for those that left")
	}
	for i, stream := range streams[2:4] {
		p.leave(fmt.Sprint("zone-", i+2), stream)
	}
	if len(p.zones) > 0 {
		t.Errorf("nobody is there, and zones are kept: %v", p.zones)
	}
	running.Wait()
}
