package server

import "time"

const (
	// pacedPerSecond limits how many strangers per second the server begins to read from while they are costly, and
	// pacedAtOnce how many after a pause. The cost of a stranger comes with its connection.
	pacedPerSecond, pacedAtOnce = 32, 4
	// creditOfProof is how many more strangers of an address the server begins to read from after one of them is
	// proven.
	creditOfProof = 4
)

// pace makes strangers begin one after the other. Those that authenticate do not count: thousands of them begin at
// once.
type pace struct {
	left float64 // of pacedAtOnce, at that moment
	at   time.Time
}

// has reports whether one more may begin.
func (p *pace) has(now time.Time) bool {
	p.left = min(p.left+max(now.Sub(p.at).Seconds(), 0)*pacedPerSecond, pacedAtOnce)
	p.at = now
	return p.left >= 1
}

// mayBegin reports whether the cost of strangers permits reading from a stranger of p now. c.mu is held.
func (c *crowd) mayBegin(p *peer, now time.Time) bool {
	return !c.costly || p.credit > 0 || c.pace.has(now)
}

// begins records that reading from g begins. c.mu is held.
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

// proves records that g was proven, so that others of its address are likely to be proven too. c.mu is held.
func (c *crowd) proves(g *Guest, now time.Time) {
	g.peer.proven = now
	g.peer.credit = min(g.peer.credit+creditOfProof, c.limits.servedPerAddress)
	if g.paced {
		c.pace.left = min(c.pace.left+1, pacedAtOnce)
	}
}

// fillLater calls fill once another stranger may begin. c.mu is held.
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
