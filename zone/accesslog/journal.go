package accesslog

import (
	"cmp"
	"container/list"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// DefaultCapacity is how many kinds of requests are told apart.
const DefaultCapacity = 20_000

// maxLost bounds for how many policies it is known when the last of their shadow denials made room.
const maxLost = 10_000

// Entry is an Observation with how often and when it was made.
type Entry struct {
	Observation

	Count       uint64
	First, Last time.Time

	// paths are those that were seen, without queries; elsewhere counts requests whose path is not kept.
	paths     map[string]pathSeen
	elsewhere uint64

	// turn orders entries by when they were last added to.
	turn uint64
}

// Journal counts observations. When it is full, what was not seen for longest makes room: of the same proxy when that has more
// than its share, otherwise of the one that has most. So no proxy pushes out what others reported.
type Journal struct {
	since    time.Time
	capacity int

	mu      sync.Mutex
	entries map[Observation]*list.Element // guarded by mu: of *Entry
	proxies map[string]*list.List         // guarded by mu: the entries of each proxy, the most recent first
	turn    uint64                        // guarded by mu
	dropped uint64                        // guarded by mu
	paths   int                           // guarded by mu: of all entries
	pathsOf map[string]int                // guarded by mu: of each proxy
	// lost is when the last of the shadow denials of a policy that made room was seen; anyLost is the same for policies that lost
	// has no room for. Guarded by mu.
	lost    map[string]time.Time
	anyLost time.Time
}

// NewJournal starts to count at since; capacity is DefaultCapacity when zero.
func NewJournal(since time.Time, capacity int) *Journal {
	if capacity == 0 {
		capacity = DefaultCapacity
	}
	return &Journal{since: since, capacity: capacity, entries: map[Observation]*list.Element{}, proxies: map[string]*list.List{}, pathsOf: map[string]int{}, lost: map[string]time.Time{}}
}

// Add counts one observation. The path is that of an HTTP request, without its query; empty where it is not known.
func (j *Journal) Add(o Observation, path string, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.turn++
	proxy := proxyOf(o.Inbound)
	if element := j.entries[o]; element != nil {
		e, _ := element.Value.(*Entry)
		e.Count++
		e.turn = j.turn
		if at.After(e.Last) {
			e.Last = at
		}
		j.addPathLocked(e, proxy, path, at)
		j.proxies[proxy].MoveToFront(element)
		return
	}
	if len(j.entries) == j.capacity {
		j.makeRoomLocked(proxy)
	}
	own := j.proxies[proxy]
	if own == nil {
		own = list.New()
		j.proxies[proxy] = own
	}
	e := &Entry{Observation: o, Count: 1, First: at, Last: at, turn: j.turn}
	j.addPathLocked(e, proxy, path, at)
	j.entries[o] = own.PushFront(e)
}

// proxyOf is the KRI of the Dataplane whose inbound it is.
func proxyOf(inbound string) string { return inbound[:strings.LastIndexByte(inbound, '_')+1] }

// makeRoomLocked drops the oldest entry of a proxy that wants to add one, or of the one that has most.
func (j *Journal) makeRoomLocked(proxy string) {
	from := proxy
	if own := j.proxies[proxy]; own == nil || own.Len() <= j.capacity/len(j.proxies) {
		most := 0
		for name, theirs := range j.proxies {
			if theirs.Len() > most {
				from, most = name, theirs.Len()
			}
		}
	}
	theirs := j.proxies[from]
	e, _ := theirs.Remove(theirs.Back()).(*Entry)
	if theirs.Len() == 0 {
		delete(j.proxies, from)
	}
	delete(j.entries, e.Observation)
	j.forgetPathsLocked(e, from)
	j.dropped += e.Count
	j.loseLocked(e)
}

func (j *Journal) loseLocked(e *Entry) {
	if e.ShadowPolicy == "" {
		return
	}
	at, there := j.lost[e.ShadowPolicy]
	switch {
	case !there && len(j.lost) == maxLost:
		if e.Last.After(j.anyLost) {
			j.anyLost = e.Last
		}
	case e.Last.After(at):
		j.lost[e.ShadowPolicy] = e.Last
	}
}

// summary is what a Journal holds at a time.
type summary struct {
	since   time.Time
	entries []Entry // the most recent first
	dropped uint64
	lost    func(policy string) time.Time
}

// read copies the entries that match.
func (j *Journal) read(match func(*Entry) bool) summary {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := summary{since: j.since, dropped: j.dropped, lost: j.lostOf}
	for _, theirs := range j.proxies {
		for element := theirs.Front(); element != nil; element = element.Next() {
			if e, _ := element.Value.(*Entry); match(e) {
				c := *e
				c.paths = maps.Clone(e.paths)
				s.entries = append(s.entries, c)
			}
		}
	}
	slices.SortFunc(s.entries, func(a, b Entry) int { return cmp.Compare(b.turn, a.turn) })
	return s
}

// lostOf is when the last shadow denial of a policy was seen that is not kept.
func (j *Journal) lostOf(policy string) time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return later(j.lost[policy], j.anyLost)
}
