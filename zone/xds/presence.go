package xds

import (
	"context"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
)

// leaveFor is how long a proxy may be disconnected, to restart or to find the zone again, before clients stop using it.
const leaveFor = 5 * time.Second

// retireFor is how long the ingress of a deleted ZoneIngress continues, while other zones learn of the deletion.
const retireFor = 10 * time.Second

// presence tracks the zone's Dataplanes that have no proxy to take a request. A Dataplane in neither map is present or
// unknown: it existed before the start, or its proxy is connected but could not be sent everything. Proxies.mu guards
// it.
type presence struct {
	// absent holds Dataplanes without a proxy: it left, or none has connected since the Dataplane was created.
	absent map[resources.Key]struct{}
	// leaving holds Dataplanes whose last stream ended, with the time at which each becomes absent.
	leaving map[resources.Key]time.Time
	// retiring holds the proxies of deleted ZoneIngresses, with the time at which each listener is removed.
	retiring map[*proxy]time.Time
	// left holds the ZoneIngresses and egresses of this zone whose last stream ended, with the time at which it did.
	left map[resources.Key]time.Time
	// unknownUntil ends the time after a start in which proxies may still reconnect. It is zero after that.
	unknownUntil time.Time
	wake         chan struct{}
}

func newPresence() *presence {
	return &presence{
		absent: map[resources.Key]struct{}{}, leaving: map[resources.Key]time.Time{}, retiring: map[*proxy]time.Time{},
		left: map[resources.Key]time.Time{}, unknownUntil: time.Now().Add(awaitFor), wake: make(chan struct{}, 1),
	}
}

// forget drops the presence of a Dataplane.
func (a *presence) forget(dataplane resources.Key) {
	delete(a.absent, dataplane)
	delete(a.leaving, dataplane)
	delete(a.left, dataplane)
}

// due returns when the next Dataplane becomes absent, or the next ingress retires; zero means never.
func (a *presence) due() time.Time {
	out := a.unknownUntil
	sooner := func(at time.Time) {
		if out.IsZero() || at.Before(out) {
			out = at
		}
	}
	for _, at := range a.leaving {
		sooner(at)
	}
	for _, at := range a.retiring {
		sooner(at)
	}
	return out
}

// changed wakes the timer to compute the next due time again.
func (a *presence) changed() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Connected reports whether a proxy of the Dataplane, or its application, has a stream.
func (x *Proxies) Connected(dataplane resources.Key) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.connectedLocked(dataplane)
}

// connectedLocked reports whether a proxy of the Dataplane, or its application, has a stream.
func (x *Proxies) connectedLocked(dataplane resources.Key) bool {
	return x.proxies[proxyID{dataplane, false}] != nil || x.proxies[proxyID{dataplane, true}] != nil
}

// workInPresenceLocked marks a new Dataplane absent until a proxy has accepted its listeners.
func (x *Proxies) workInPresenceLocked(c *store.Change) {
	key := c.Key()
	switch {
	case c.New == nil:
		x.presence.forget(key)
		for _, proxyless := range []bool{false, true} {
			if p := x.proxies[proxyID{key, proxyless}]; p != nil {
				p.listens.Store(false)
			}
		}
	case c.Old == nil && c.New.Zone() == x.cfg.Home.Zone && !x.listensLocked(key):
		x.presence.absent[key] = struct{}{}
	}
}

func (x *Proxies) listensLocked(dataplane resources.Key) bool {
	for _, proxyless := range []bool{false, true} {
		if p := x.proxies[proxyID{dataplane, proxyless}]; p != nil && p.listens.Load() {
			return true
		}
	}
	return false
}

// noteListening runs after each request of the stream that needed no response. A proxy takes requests once it has
// answered everything that it asks for, asks for its listeners, and has not refused all of them.
func (s *session) noteListening() {
	p := s.proxy
	if p.listens.Load() {
		return
	}
	if outstanding, _ := p.record.outstanding(p.filtered(), s.proxies.cfg.Now()); !outstanding && p.record.listens() {
		s.proxies.listening(p)
	}
}

func (x *Proxies) listening(p *proxy) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p.target == nil { // deleted meanwhile, or an ingress
		return
	}
	p.listens.Store(true)
	if _, absent := x.presence.absent[p.key]; !absent {
		return
	}
	x.presence.forget(p.key)
	x.presenceChangedLocked(p.key)
	x.settleLocked()
}

// disconnectedLocked starts the time in which the proxy of a Dataplane may reconnect.
func (x *Proxies) disconnectedLocked(p *proxy) {
	if p.ingress != nil || p.target != nil && len(p.target.egresses) > 0 && !x.connectedLocked(p.key) {
		x.presence.left[p.key] = time.Now()
	}
	if p.key.Type != resources.TypeDataplane || p.target == nil || x.connectedLocked(p.key) {
		return
	}
	x.presence.leaving[p.key] = time.Now().Add(leaveFor)
	x.presence.changed()
}

// retireLocked keeps the listener of a deleted ZoneIngress's proxy until other zones know of the deletion.
func (x *Proxies) retireLocked(p *proxy) {
	p.ingress = nil
	x.presence.retiring[p] = time.Now().Add(retireFor)
	x.presence.changed()
}

// presenceChangedLocked marks the ports that have the Dataplane as an endpoint.
func (x *Proxies) presenceChangedLocked(dataplane resources.Key) {
	if dp := x.cfg.Store.Snapshot().Get(dataplane); dp != nil {
		x.network.dataplaneChanged(dp, dp)
	}
}

// followPresence removes absent proxies from their clients' endpoints, until ctx ends. Proxies whose streams end with
// the server do not count as absent.
func (x *Proxies) followPresence(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		x.mu.Lock()
		due := x.presence.due()
		x.mu.Unlock()
		var fire <-chan time.Time
		if !due.IsZero() {
			timer.Reset(time.Until(due))
			fire = timer.C
		}
		select {
		case <-ctx.Done():
			return
		case <-x.presence.wake:
		case <-fire:
			if ctx.Err() == nil {
				x.expirePresence(time.Now())
			}
		}
	}
}

// expirePresence applies everything that is due, in one pass.
func (x *Proxies) expirePresence(now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for key, at := range x.presence.leaving {
		if at.After(now) {
			continue
		}
		delete(x.presence.leaving, key)
		if !x.connectedLocked(key) {
			x.presence.absent[key] = struct{}{}
			x.presenceChangedLocked(key)
			x.cfg.Log.Info("a proxy disconnected: clients use other endpoints", "mesh", key.Mesh, "namespace",
				key.Namespace, "name", key.Name)
		}
	}
	for p, at := range x.presence.retiring {
		if !at.After(now) {
			delete(x.presence.retiring, p)
			x.removeDataplaneLocked(p)
		}
	}
	if until := x.presence.unknownUntil; !until.IsZero() && !until.After(now) {
		x.presence.unknownUntil = time.Time{}
		x.sweepPresenceLocked()
	}
	x.settleLocked()
}

// sweepPresenceLocked ends the time after a start: Dataplanes whose proxy has not connected become absent.
func (x *Proxies) sweepPresenceLocked() {
	n := 0
	for dp := range x.cfg.Store.Snapshot().List(store.Query{Type: resources.TypeDataplane}) {
		_, leaving := x.presence.leaving[dp.Key]
		if dp.Zone() == x.cfg.Home.Zone && !leaving && !x.connectedLocked(dp.Key) {
			x.presence.absent[dp.Key] = struct{}{}
			n++
		}
	}
	if n > 0 {
		x.network.allChanged()
		x.cfg.Log.Info("proxies have not connected since the start: clients use other endpoints", "count", n)
	}
}

// retainPresenceLocked drops Dataplanes that the store no longer has.
func (x *Proxies) retainPresenceLocked(snap store.Snapshot) {
	for key := range x.presence.absent {
		if snap.Get(key) == nil {
			x.presence.forget(key)
		}
	}
	for key := range x.presence.left {
		if snap.Get(key) == nil {
			delete(x.presence.left, key)
		}
	}
}

// Presence reports whether the proxy of a ZoneIngress or an egress of this zone is connected. Left is when its last
// stream ended, zero for one that has not connected since the start; Awaited is set while that one may still reconnect.
// Avoided means that clients in this zone avoid it: it left, or has not yet answered everything that it was sent.
type Presence struct {
	Connected bool
	Left      time.Time
	Awaited   bool
	Avoided   bool
}

// Ingress returns the presence of the proxy of a ZoneIngress of this zone.
func (x *Proxies) Ingress(ingress resources.Key) Presence {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.presentLocked(ingress)
}

// Egress returns the presence of the proxy of an egress of this zone.
func (x *Proxies) Egress(dataplane resources.Key) Presence {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := x.presentLocked(dataplane)
	_, out.Avoided = x.presence.absent[dataplane]
	return out
}

func (x *Proxies) presentLocked(key resources.Key) Presence {
	out := Presence{Connected: x.connectedLocked(key), Left: x.presence.left[key]}
	out.Awaited = !out.Connected && out.Left.IsZero() && !x.presence.unknownUntil.IsZero()
	return out
}
