package server

import "time"

const (
	// pacedPerSecond is how many strangers a second begin to be read from while they cost much, pacedAtOnce how many of them after a
	// pause: what a stranger costs comes with its connection.
	pacedPerSecond, pacedAtOnce = 32, 4
	// creditOfProof is how many of an address begin to be read from besides, for each of it that has proven who it is.
	creditOfProof = 4
)

// pace has strangers begin one after the other. Those who prove who they are do not count: thousands of them begin at once.
type pace struct {
	left float64 // of pacedAtOnce, at the given moment
	at   time.Time
}

// has reports whether one more may begin.
func (p *pace) has(now time.Time) bool {
	p.left = min(p.left+max(now.Sub(p.at).Seconds(), 0)*pacedPerSecond, pacedAtOnce)
	p.at = now
	return p.left >= 1
}

// mayBegin reports whether a stranger of p may be read from now, as far as what strangers cost is concerned. c.mu is held.
func (c *crowd) mayBegin(p *peer, now time.Time) bool {
	return !c.costly || p.credit > 0 || c.pace.has(now)
}

// begins counts that g is read from now. c.mu is held.
func (c *crowd) begins(g *Guest) {
	switch {
	case !c.costly:
	case g.peer.credit > 0:
		g.peer.credit--
	default:
		g.paced = true
		c.pace.left--
	}
}

// proves counts that g has proven who it is, and that others of its address are likely to do the same. c.mu is held.
func (c *crowd) proves(g *Guest, now time.Time) {
	g.peer.proven = now
	g.peer.credit = min(g.peer.credit+creditOfProof, c.limits.servedPerAddress)
	if g.paced {
		c.pace.left = min(c.pace.left+1, pacedAtOnce)
	}
}

// fillLater is fill once another stranger may begin. c.mu is held.
func (c *crowd) fillLater() {
	if c.later != nil || c.err != nil {
		return
	}
	c.later = time.AfterFunc(time.Second/pacedPerSecond, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.later = nil
		c.fill(time.Now())
	})
}
