package kds

import (
	"runtime"
	"sync"
	"weak"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"github.com/causeway-mesh/causeway/resources"
)

// parcels finds a message that another stream is sending. A zone that connects or has news mostly gets what others get,
// so a list or a change is processed once, and not once for each zone. A message that no stream sends any more is
// dropped. Safe for concurrent use.
type parcels struct {
	mu      sync.Mutex
	made    map[parcelKey]madeParcel    // guarded by mu
	packing map[parcelKey]chan struct{} // guarded by mu: closed once it is made, or found to be for one zone alone
}

// parcelKey identifies the content of a message: a list of a type, or its changes since a revision, from a position on,
// for peers with these features.
type parcelKey struct {
	typ       resources.Type
	features  exchange.Features
	list      bool
	since     uint64
	after     resources.Key
	afterName string
}

// madeParcel is a parcel that is valid from the revision that it was made at to one until which the type did not
// change.
type madeParcel struct {
	parcel      weak.Pointer[parcel]
	from, until uint64
}

func newParcels() *parcels {
	return &parcels{made: map[parcelKey]madeParcel{}, packing: map[parcelKey]chan struct{}{}}
}

// found returns the parcel for a snapshot at revision at, or nil. unchanged reports whether the type has not changed
// between a given revision and at.
func (e *Encoder) found(key parcelKey, at uint64, unchanged func(since uint64) bool) *parcel {
	p := e.parcels.find(key, at, unchanged)
	if p != nil {
		e.hits.Add(uint64(len(p.resources)))
	}
	return p
}

func (ps *parcels) find(key parcelKey, at uint64, unchanged func(since uint64) bool) *parcel {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	m := ps.made[key]
	p := m.parcel.Value()
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
func (ps *parcels) keep(key parcelKey, at uint64, p *parcel) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if m := ps.made[key]; m.parcel.Value() != nil && m.until > at {
		return // there is a newer one
	}
	ps.made[key] = madeParcel{parcel: weak.Make(p), from: at, until: at}
	runtime.AddCleanup(p, ps.forget, key)
}

func (ps *parcels) forget(key parcelKey) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.made[key].parcel.Value() == nil {
		delete(ps.made, key)
	}
}

// begin announces that the caller makes the parcel, until it calls done, which it may call repeatedly. If others is not
// nil, another stream is making it: wait until others is closed, then look again.
func (ps *parcels) begin(key parcelKey) (done func(), others <-chan struct{}) {
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
