package server

import (
	"cmp"
	"net"
	"slices"
	"time"
)

// arrive gives a new connection a place, queues it, or closes it.
func (c *crowd) arrive(conn net.Conn, now time.Time) {
	address, counts := networkOf(conn.RemoteAddr())
	counts = counts || c.limits.loopback
	c.mu.Lock()
	p, ok := c.enter(address, counts, now)
	if !ok {
		c.mu.Unlock()
		_ = conn.Close()
		return
	}
	g := newGuest(conn, c, p, counts)
	yielding := c.yielding(g)
	var out *Guest
	if c.served < c.limits.served && len(p.served) < c.limits.servedPerAddress && c.mayBegin(p, now) {
		c.serve(g, now)
	} else {
		out = c.queue(g, now)
	}
	c.mu.Unlock()
	for _, g := range []*Guest{out, yielding} {
		if g != nil {
			_ = g.Close()
		}
	}
}

// yielding adds g, and returns the connection that makes room for it, or nil if there is room. c.mu is held.
func (c *crowd) yielding(g *Guest) *Guest {
	if !c.limits.yields {
		return nil
	}
	most := g.peer
	most.all = append(most.all, g)
	switch {
	case most.open > c.limits.perAddress:
	case c.open > c.limits.total:
		for _, p := range c.addresses {
			if p.open > most.open {
				most = p
			}
		}
	default:
		return nil
	}
	return most.all[0]
}

// serve makes Accept return g, which from now on has some time for its proof. c.mu is held.
func (c *crowd) serve(g *Guest, now time.Time) {
	c.begins(g)
	g.since, g.state = now, guestServed
	g.peer.served = append(g.peer.served, g)
	c.busy[g.peer] = struct{}{}
	c.served++
	g.due(c.limits.proof)
	c.ready = append(c.ready, g)
	c.changed.Signal()
	if c.served >= costlyPlaces {
		c.lookAfter(lookInterval)
	}
}

// queue makes g wait, and returns the connection to close if too many wait: the oldest of the address with the most.
// c.mu is held.
func (c *crowd) queue(g *Guest, now time.Time) (out *Guest) {
	if c.waiting >= c.limits.waiting {
		var most *peer
		for p := range c.queued {
			if most == nil || len(p.waiting) > len(most.waiting) {
				most = p
			}
		}
		out = most.waiting[0]
	}
	g.state = guestWaiting
	g.peer.waiting = append(g.peer.waiting, g)
	c.queued[g.peer] = struct{}{}
	c.waiting++
	g.due(c.limits.patience)
	c.lookAfter(c.nextLook(now))
	return out
}

// settle removes a stranger that was proven or is gone. A waiting one takes its place. c.mu is held.
func (c *crowd) settle(g *Guest, now time.Time) {
	p := g.peer
	switch g.state {
	case guestServed:
		if p.served = without(p.served, g); len(p.served) == 0 {
			delete(c.busy, p)
		}
		c.served--
	case guestWaiting:
		c.stopWaiting(g)
	}
	g.state = guestSettled
	c.fill(now)
}

// stopWaiting removes g from the queue. c.mu is held.
func (c *crowd) stopWaiting(g *Guest) {
	p := g.peer
	if p.waiting = without(p.waiting, g); len(p.waiting) == 0 {
		delete(c.queued, p)
	}
	c.waiting--
}

// leave settles a closed connection.
func (c *crowd) leave(g *Guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.state != guestSettled {
		now := time.Now()
		if g.state == guestServed {
			c.loses(now)
		}
		c.settle(g, now)
	}
	if i := slices.Index(c.ready, g); i >= 0 {
		c.ready = slices.Delete(c.ready, i, i+1)
	}
	g.peer.open--
	g.peer.all = without(g.peer.all, g)
	if g.counts {
		c.open--
	}
}

// fill gives free places to waiting strangers: to the newest one of the address with the fewest places. If more arrive
// than are served, the oldest has often given up, and is back at the end of the queue. c.mu is held.
func (c *crowd) fill(now time.Time) {
	for c.waiting > 0 && c.served < c.limits.served && c.err == nil {
		next := c.next(func(p *peer) bool { return c.mayBegin(p, now) })
		if next == nil {
			c.fillLater()
			return
		}
		if len(next.served) >= c.limits.servedPerAddress {
			return
		}
		g := next.waiting[len(next.waiting)-1]
		c.stopWaiting(g)
		c.serve(g, now)
	}
}

// next returns the address whose turn it is: among those that wait and may begin, the one with the fewest places, and
// among equals the one with the most credit. c.mu is held.
func (c *crowd) next(may func(*peer) bool) *peer {
	var next *peer
	for p := range c.queued {
		if (next == nil || cmp.Or(cmp.Compare(len(p.served), len(next.served)),
			cmp.Compare(next.credit, p.credit)) < 0) && may(p) {
			next = p
		}
	}
	return next
}

// yields returns the address that must give up places for those that wait, or nil while none wait. c.mu is held.
func (c *crowd) yields() *peer {
	next := c.next(func(*peer) bool { return true })
	if next == nil || len(next.served) >= c.limits.servedPerAddress {
		return next
	}
	var most *peer
	for p := range c.busy {
		if most == nil || len(p.served) > len(most.served) {
			most = p
		}
	}
	return most
}

// nextLook returns when to check whether a stranger makes room. c.mu is held.
func (c *crowd) nextLook(now time.Time) time.Duration {
	p := c.yields()
	if p == nil {
		return lookInterval
	}
	return min(max(c.limits.grace-now.Sub(p.served[0].since), leastTurn), spentGrace)
}

// hadEnough reports whether a stranger makes room for others. If strangers of its address authenticate, places become
// free without that, and a stranger may be slow because the server is. c.mu is held.
func (c *crowd) hadEnough(g *Guest, now time.Time) bool {
	if now.Sub(g.peer.proven) < c.limits.grace {
		return false
	}
	had := now.Sub(g.since)
	return had >= c.limits.grace || had >= spentGrace && g.spent.Load()
}

// without removes g and keeps the order.
func without(list []*Guest, g *Guest) []*Guest {
	if i := slices.Index(list, g); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
