package server

import "time"

const (
	// leastTurn is the shortest interval between checks of waiting strangers, lookInterval the interval between checks
	// of their cost.
	leastTurn, lookInterval = 20 * time.Millisecond, time.Second
	// spentGrace is how long a stranger may stay, while others wait, once the server has read everything that it reads
	// from one without a proof.
	spentGrace = 250 * time.Millisecond
	// costlyPlaces limits the strangers that stay for long, and costlyLosses those that leave unproven in an interval.
	// Above either, strangers begin one after the other, and their garbage is collected eagerly.
	costlyPlaces, costlyLosses = 16, 16
)

// lookAfter schedules a check of strangers, unless one is already due. c.mu is held.
func (c *crowd) lookAfter(d time.Duration) {
	if c.look == nil && c.err == nil {
		c.look = time.AfterFunc(d, c.lookNow)
	}
}

// lookSoon schedules a check at once, even if one is due later. c.mu is held.
func (c *crowd) lookSoon() {
	if c.look == nil {
		c.lookAfter(0)
	} else {
		c.look.Reset(0)
	}
}

// lookNow closes strangers that have had enough time, if others wait, and schedules further checks while they are
// needed.
func (c *crowd) lookNow() {
	now := time.Now()
	c.mu.Lock()
	var out []*Guest
	if p := c.yields(); p != nil {
		for _, g := range p.served {
			if len(out) < c.waiting && g.state == guestServed && c.hadEnough(g, now) {
				out = append(out, g)
			}
		}
	}
	c.mu.Unlock()
	for _, g := range out {
		_ = g.Close() // which frees its place
	}
	c.weigh(now)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look = nil
	switch {
	case c.err != nil:
	case c.waiting > 0:
		c.lookAfter(c.nextLook(now))
	case c.costly || c.served >= costlyPlaces:
		c.lookAfter(lookInterval)
	}
}

// weigh decides whether strangers are costly. While they are, their starts are paced and their garbage is collected
// eagerly. Strangers that authenticate at once cost next to nothing.
func (c *crowd) weigh(now time.Time) {
	c.mu.Lock()
	if c.err == nil && now.Sub(c.counted) < lookInterval && c.costly == c.eager {
		c.mu.Unlock()
		return
	}
	if c.err != nil || now.Sub(c.counted) >= lookInterval {
		c.costly = c.err == nil && (c.lingering(now) >= costlyPlaces || c.lost >= costlyLosses)
		c.lost, c.counted = 0, now
		c.fill(now)
	}
	eager := c.costly
	change := eager != c.eager
	c.eager = eager
	c.mu.Unlock()
	if change {
		collectForStrangers(eager)
	}
}

// lingering returns how many strangers have been read from for long. c.mu is held.
func (c *crowd) lingering(now time.Time) (long int) {
	for p := range c.busy {
		for _, g := range p.served {
			if g.state == guestServed && now.Sub(g.since) >= lookInterval {
				long++
			}
		}
	}
	return long
}

// loses counts a stranger that left unproven. c.mu is held.
func (c *crowd) loses(now time.Time) {
	c.lost++
	if c.lost == costlyLosses && !c.costly { // before they have cost much
		c.costly, c.counted = true, now
		c.lookSoon()
	}
}
