package kds

import (
	"runtime"
	"sync"
	"weak"

	"github.com/causeway-mesh/causeway/kds/exchange"

	"github.com/causeway-mesh/causeway/resources"
)

// parcels finds a message that another stream is sending: a zone that connects, or hears of a change, mostly gets what
// others get, so a list or a change is gone through once and not once for each zone. What nobody sends any more is
// forgotten. Safe for concurrent use.
type parcels struct {
	mu      sync.Mutex
	made    map[parcelKey]madeParcel    // guarded by mu
	packing map[parcelKey]chan struct{} // guarded by mu: closed once it is made, or found to be for one zone alone
}

// parcelKey says what a message is of: a list of a type or its changes since a revision, from a place on, for peers with
// these features.
type parcelKey struct {
	typ       resources.Type
	features  exchange.Features
	list      bool
	since     uint64
	after     resources.Key
	afterName string
}

// madeParcel is a parcel that holds from the revision that it was made at to one until which the type did not change.
type madeParcel struct {
	parcel      weak.Pointer[parcel]
	from, until uint64
}

func newParcels() *parcels {
	return &parcels{made: map[parcelKey]madeParcel{}, packing: map[parcelKey]chan struct{}{}}
}

// found returns the parcel for a snapshot at revision at, or nil. unchanged reports whether the type is at that revision what
// it was at the one that it is asked about.
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

// keep lets others find p as long as somebody sends it.
func (ps *parcels) keep(key parcelKey, at uint64, p *parcel) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if m := ps.made[key]; m.parcel.Value() != nil && m.until > at {
		return // a newer one
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

// begin says that the caller is going to make the parcel, until it calls done, which may be called again. When others is
// not nil somebody else is at it: wait for it to be closed, and look again.
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
