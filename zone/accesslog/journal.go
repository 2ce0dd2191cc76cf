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

// DefaultCapacity is the default number of distinct observations that a Journal keeps.
const DefaultCapacity = 20_000

// maxLost limits the number of policies for which a Journal keeps the time of the last evicted shadow denial.
const maxLost = 10_000

// Entry is an Observation with its count and the times of its first and last occurrence.
type Entry struct {
	Observation

	Count       uint64
	First, Last time.Time

	// paths holds the observed paths, without queries; elsewhere counts requests whose path is not kept.
	paths     map[string]pathSeen
	elsewhere uint64

	// turn orders entries by their last update.
	turn uint64
}

// Journal counts observations. When it is full, it evicts the least recently seen entry: of the same proxy if that has
// more than its share, otherwise of the proxy with the most entries. A proxy that floods the journal evicts its own
// entries first.
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
	// lost maps a policy to the time at which its last evicted shadow denial was seen; anyLost is that time for all
	// policies that do not fit into lost. Guarded by mu.
	lost    map[string]time.Time
	anyLost time.Time
}

// NewJournal returns an empty Journal that counts from since. A zero capacity means DefaultCapacity.
func NewJournal(since time.Time, capacity int) *Journal {
	if capacity == 0 {
		capacity = DefaultCapacity
	}
	return &Journal{since: since, capacity: capacity, entries: map[Observation]*list.Element{},
		proxies: map[string]*list.List{}, pathsOf: map[string]int{}, lost: map[string]time.Time{}}
}

// Add counts one observation. path is the path of an HTTP request without its query, or empty if it is unknown.
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

// proxyOf returns the KRI of the Dataplane that has the inbound.
func proxyOf(inbound string) string { return inbound[:strings.LastIndexByte(inbound, '_')+1] }

// makeRoomLocked evicts the least recently seen entry of the proxy that adds one, or of the proxy with the most
// entries.
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

// summary is a copy of a Journal's content at one time.
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

// lostOf returns the time at which the last evicted shadow denial of a policy was seen.
func (j *Journal) lostOf(policy string) time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return later(j.lost[policy], j.anyLost)
}
