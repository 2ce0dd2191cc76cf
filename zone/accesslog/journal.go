package accesslog

import (
	"container/list"
	"sync"
	"time"
)

// DefaultCapacity is how many kinds of requests are told apart.
const DefaultCapacity = 20_000

// Entry is an Observation with how often and when it was made.
type Entry struct {
	Observation

	Count       uint64
	First, Last time.Time
}

// Journal counts observations. When it is full, what was not seen for longest makes room.
type Journal struct {
	since    time.Time
	capacity int

	mu      sync.Mutex
	entries map[Observation]*list.Element // guarded by mu: of *Entry
	recent  *list.List                    // guarded by mu: the most recent first
	dropped uint64                        // guarded by mu
	// lastDropped is when the last of the shadow denials that made room was seen. Guarded by mu.
	lastDropped time.Time
}

// NewJournal starts to count at since; capacity is DefaultCapacity when zero.
func NewJournal(since time.Time, capacity int) *Journal {
	if capacity == 0 {
		capacity = DefaultCapacity
	}
	return &Journal{since: since, capacity: capacity, entries: map[Observation]*list.Element{}, recent: list.New()}
}

// Add counts one observation.
func (j *Journal) Add(o Observation, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if element := j.entries[o]; element != nil {
		e, _ := element.Value.(*Entry)
		e.Count++
		if at.After(e.Last) {
			e.Last = at
		}
		j.recent.MoveToFront(element)
		return
	}
	if j.recent.Len() == j.capacity {
		j.dropOldestLocked()
	}
	j.entries[o] = j.recent.PushFront(&Entry{Observation: o, Count: 1, First: at, Last: at})
}

func (j *Journal) dropOldestLocked() {
	e, _ := j.recent.Remove(j.recent.Back()).(*Entry)
	delete(j.entries, e.Observation)
	j.dropped += e.Count
	if e.ShadowPolicy != "" && e.Last.After(j.lastDropped) {
		j.lastDropped = e.Last
	}
}

// summary is what a Journal holds at a time.
type summary struct {
	since       time.Time
	entries     []Entry // the most recent first
	dropped     uint64
	lastDropped time.Time
}

// read copies the entries that match.
func (j *Journal) read(match func(*Entry) bool) summary {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := summary{since: j.since, dropped: j.dropped, lastDropped: j.lastDropped}
	for element := j.recent.Front(); element != nil; element = element.Next() {
		if e, _ := element.Value.(*Entry); match(e) {
			s.entries = append(s.entries, *e)
		}
	}
	return s
}
