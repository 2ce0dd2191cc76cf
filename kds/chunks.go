package kds

import (
	"runtime"
	"sync"
	"weak"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"github.com/causeway-mesh/causeway/resources"
)

// chunks finds a message that another stream is sending. A zone that connects or has news mostly gets what others get,
// so a list or a change is processed once, and not once for each zone. A message that no stream sends any more is
// dropped. Safe for concurrent use.
type chunks struct {
	mu      sync.Mutex
	made    map[chunkKey]madeChunk     // guarded by mu
	packing map[chunkKey]chan struct{} // guarded by mu: closed once it is made, or found to be for one zone alone
}

// chunkKey identifies the content of a message: a list of a type, or its changes since a revision, from a position on,
// for peers with these features.
type chunkKey struct {
	typ      resources.Type
	features exchange.Features
	list     bool
	// have is what the peers had before a list; nil for those that did not say.
	have      *inventory
	since     uint64
	after     resources.Key
	afterName string
}

// madeChunk is a chunk that is valid from the revision that it was made at to one until which the type did not
// change.
type madeChunk struct {
	chunk       weak.Pointer[chunk]
	from, until uint64
}

func newChunks() *chunks {
	return &chunks{made: map[chunkKey]madeChunk{}, packing: map[chunkKey]chan struct{}{}}
}

// found returns the chunk for a snapshot at revision at, or nil. unchanged reports whether the type has not changed
// between a given revision and at.
func (e *Encoder) found(key chunkKey, at uint64, unchanged func(since uint64) bool) *chunk {
	p := e.chunks.find(key, at, unchanged)
	if p != nil {
		e.hits.Add(uint64(len(p.resources)))
	}
	return p
}

func (ps *chunks) find(key chunkKey, at uint64, unchanged func(since uint64) bool) *chunk {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	m := ps.made[key]
	p := m.chunk.Value()
	if p == nil || at < m.from {
		return nil
	}
	if at > m.until {
		if !unchanged(m.until) {
			return nil
		}
		m.until = at
		ps.made[key] = m
	}
	return p
}

// keep lets other streams find p while one sends it.
func (ps *chunks) keep(key chunkKey, at uint64, p *chunk) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if m := ps.made[key]; m.chunk.Value() != nil && m.until > at {
		return // there is a newer one
	}
	ps.made[key] = madeChunk{chunk: weak.Make(p), from: at, until: at}
	runtime.AddCleanup(p, ps.forget, key)
}

func (ps *chunks) forget(key chunkKey) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.made[key].chunk.Value() == nil {
		delete(ps.made, key)
	}
}

// begin announces that the caller makes the chunk, until it calls done, which it may call repeatedly. If others is not
// nil, another stream is making it: wait until others is closed, then look again.
func (ps *chunks) begin(key chunkKey) (done func(), others <-chan struct{}) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if under, ok := ps.packing[key]; ok {
		return func() {}, under
	}
	made := make(chan struct{})
	ps.packing[key] = made
	return sync.OnceFunc(func() {
		ps.mu.Lock()
		defer ps.mu.Unlock()
		delete(ps.packing, key)
		close(made)
	}), nil
}
