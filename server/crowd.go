package server

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// crowdLimits bound the connections of one address, and of all together. A connection above them is closed before a
// byte of it is read, so that it costs no handshake.
type crowdLimits struct {
	// perAddress and total bound open connections.
	perAddress, total int
	// perSecond and burst bound new connections of one address, and thus its handshakes.
	perSecond rate.Limit
	burst     int
	// loopback applies perAddress, total, perSecond and burst to connections from this machine too.
	loopback bool
	// yields makes the oldest connection give way above perAddress or total: one of the address itself, or of the
	// address with the most connections.
	yields bool

	strangerLimits
}

// strangerLimits bound the cost of unauthenticated connections, wherever they come from.
type strangerLimits struct {
	// served bounds the connections that are read from, servedPerAddress those of one address. waiting bounds those
	// that wait, unread, for their turn.
	served, servedPerAddress, waiting int
	// proof is how long the server reads from a silent stranger without a proof, and slowest how long from one that
	// sends. patience is how long a stranger waits to be read, and grace how long one may stay while others wait.
	proof, slowest, patience, grace time.Duration
	// bytes and frames bound what is read from one connection.
	bytes, frames int
}

// defaultCrowd lets a machine with hundreds of proxies behind one address reconnect at once after an outage. A proof
// takes milliseconds, so a few places are enough for thousands of simultaneous connections.
func defaultCrowd() crowdLimits {
	return crowdLimits{
		perAddress: 1024, total: 32 << 10, perSecond: 100, burst: 1024,
		strangerLimits: strangerLimits{
			served: 128, servedPerAddress: 64, waiting: 16 << 10,
			proof: 10 * time.Second, slowest: time.Minute, patience: time.Minute, grace: time.Second,
			bytes: 64 << 10, frames: 32,
		},
	}
}

// openCrowd is for a port without authentication. A guest that has made a valid request counts as proven, and its
// connections are few, including those of this machine. Idle connections must not keep probes out.
func openCrowd() crowdLimits {
	c := defaultCrowd()
	c.perAddress, c.total, c.perSecond, c.loopback, c.yields = 128, 256, 1000, true, true
	return c
}

// idleAddresses is how many addresses without a connection keep their rate.
const idleAddresses = 4096

// crowd is a listener with crowdLimits. Its own goroutine accepts connections from the underlying listener, from the
// first Accept until Close, which waits for it.
type crowd struct {
	net.Listener
	limits crowdLimits
	taker  sync.WaitGroup
	// fence is the function of Fence.
	fence atomic.Pointer[func() error]

	mu        sync.Mutex
	changed   sync.Cond        // on mu: ready, or err
	taking    bool             // guarded by mu
	err       error            // guarded by mu: why accepting has stopped
	ready     []*Guest         // guarded by mu: connections for Accept to return
	open      int              // guarded by mu: those that count towards total
	addresses map[string]*peer // guarded by mu
	refused   refused          // guarded by mu
	strangers
}

// peer holds the connections of one address.
type peer struct {
	open int
	rate *rate.Limiter
	// all holds its connections, the oldest first, if the limits yield.
	all []*Guest
	// served and waiting hold its strangers, the oldest first. proven is when one was last proven, and credit how many
	// more may begin because of those proofs.
	served, waiting []*Guest
	proven          time.Time
	credit          int
}

// strangers holds the strangers of a crowd, guarded by its mu.
type strangers struct {
	// served counts those being read from, waiting those in the queue.
	served, waiting int
	// busy and queued are the addresses with strangers of either kind.
	busy, queued map[*peer]struct{}
	// look is set while a check of them is scheduled.
	look *time.Timer
	// lost counts those that left unproven since their cost was last weighed, at counted.
	lost    int
	counted time.Time
	// costly means that they cost so much that their starts are paced. eager means that garbage is collected eagerly
	// because of them.
	costly, eager bool
	pace          pace
	later         *time.Timer // set while a next one is due to begin
}

func limited(l net.Listener, c crowdLimits) net.Listener {
	out := &crowd{Listener: l, limits: c, addresses: map[string]*peer{},
		strangers: strangers{busy: map[*peer]struct{}{}, queued: map[*peer]struct{}{}}}
	out.changed.L = &out.mu
	return out
}

// Accept returns the next connection within the limits, which is a *Guest.
func (c *crowd) Accept() (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.taking && c.err == nil {
		c.taking = true
		c.taker.Go(c.acceptAll)
	}
	for len(c.ready) == 0 {
		if c.err != nil {
			return nil, c.err
		}
		c.changed.Wait()
	}
	next := c.ready[0]
	c.ready = c.ready[1:]
	return next, nil
}

// Close ends Accept and closes the connections that it has not returned. Strangers get a moment to finish: a draining
// server does not wait for a silent one.
func (c *crowd) Close() error {
	err := c.Listener.Close()
	c.mu.Lock()
	if c.err == nil {
		c.err = net.ErrClosed
	}
	left := c.ready
	for p := range c.queued {
		left = append(left, p.waiting...)
	}
	for p := range c.busy {
		for _, g := range p.served {
			g.due(lastWord)
		}
	}
	c.ready = nil
	if c.look != nil {
		c.look.Stop()
	}
	if c.later != nil {
		c.later.Stop()
	}
	eager := c.eager
	c.costly, c.eager = false, false
	c.changed.Broadcast()
	c.mu.Unlock()
	if eager {
		collectForStrangers(false)
	}
	for _, g := range left {
		_ = g.Close()
	}
	c.taker.Wait()
	return err
}

// acceptAll accepts until the underlying listener is closed. Exhausted resources, such as files, may soon be available
// again.
func (c *crowd) acceptAll() {
	for pause := time.Duration(0); ; {
		conn, err := c.Listener.Accept()
		if err == nil {
			if pause > 0 {
				c.recovers()
			}
			pause = 0
			c.arrive(conn, time.Now())
			continue
		}
		if temporary, ok := err.(interface{ Temporary() bool }); ok && temporary.Temporary() {
			c.refuse(err, time.Now())
			pause = min(max(2*pause, 5*time.Millisecond), acceptPause)
			if c.sleep(pause) {
				continue
			}
		}
		c.mu.Lock()
		if c.err == nil {
			c.err = err
		}
		c.changed.Broadcast()
		c.mu.Unlock()
		return
	}
}

// sleep returns false if c was closed meanwhile.
func (c *crowd) sleep(d time.Duration) bool {
	<-time.After(d)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil
}

// enter counts a connection, unless it is above the limits and no other gives way. c.mu is held.
func (c *crowd) enter(address string, counts bool, now time.Time) (*peer, bool) {
	p := c.addresses[address]
	if p == nil {
		c.forget()
		p = &peer{rate: rate.NewLimiter(c.limits.perSecond, c.limits.burst)}
		c.addresses[address] = p
	}
	if c.err != nil {
		return p, false
	}
	if counts {
		full := c.open >= c.limits.total || p.open >= c.limits.perAddress
		if full && !c.limits.yields || !p.rate.AllowN(now, 1) {
			return p, false
		}
		c.open++
	}
	p.open++
	return p, true
}

// forget drops addresses without connections once there are many. c.mu is held.
func (c *crowd) forget() {
	if len(c.addresses) < c.limits.total+idleAddresses {
		return
	}
	for address, p := range c.addresses {
		if p.open == 0 {
			delete(c.addresses, address)
		}
	}
}

// networkOf returns the unit for counting connections: an IPv4 address, or the network of an IPv6 one. counts is false
// for this machine.
func networkOf(a net.Addr) (address string, counts bool) {
	tcp, ok := a.(*net.TCPAddr)
	switch {
	case !ok:
		return "", false
	case tcp.IP.To4() == nil && !tcp.IP.IsLoopback():
		return tcp.IP.Mask(net.CIDRMask(64, 128)).String(), true
	}
	return tcp.IP.String(), !tcp.IP.IsLoopback()
}
