package server

import (
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// crowdLimits bound what one address, and all together, may keep a listener busy with. A connection above them is closed
// before a byte of it is read, so that it costs no handshake.
type crowdLimits struct {
	// perAddress and total bound open connections.
	perAddress, total int
	// perSecond and burst bound new connections of one address, and with them its handshakes.
	perSecond rate.Limit
	burst     int
	// loopback: connections of this machine count too.
	loopback bool
}

// defaultCrowd lets a machine with hundreds of proxies behind one address come back at once after an outage.
func defaultCrowd() crowdLimits {
	return crowdLimits{perAddress: 1024, total: 32 << 10, perSecond: 100, burst: 1024}
}

// idleAddresses is how many addresses without a connection are remembered for their rate.
const idleAddresses = 4096

// crowd is a listener with crowdLimits.
type crowd struct {
	net.Listener
	limits crowdLimits

	mu        sync.Mutex
	open      int              // guarded by mu
	addresses map[string]*peer // guarded by mu
}

// peer is what one address has.
type peer struct {
	open int
	rate *rate.Limiter
}

func limited(l net.Listener, c crowdLimits) net.Listener {
	return &crowd{Listener: l, limits: c, addresses: map[string]*peer{}}
}

// Accept returns the next connection within the limits.
func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address := networkOf(conn.RemoteAddr())
		if address == "" && !c.limits.loopback {
			return conn, nil
		}
		if c.enter(address, time.Now()) {
			return &guest{Conn: conn, leave: sync.OnceFunc(func() { c.leave(address) })}, nil
		}
		_ = conn.Close()
	}
}

func (c *crowd) enter(address string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.addresses[address]
	if p == nil {
		c.forget()
		p = &peer{rate: rate.NewLimiter(c.limits.perSecond, c.limits.burst)}
		c.addresses[address] = p
	}
	if c.open >= c.limits.total || p.open >= c.limits.perAddress || !p.rate.AllowN(now, 1) {
		return false
	}
	p.open++
	c.open++
	return true
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

func (c *crowd) leave(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if p := c.addresses[address]; p != nil {
		p.open--
	}
}

// networkOf is what is counted as one: an IPv4 address, the network of an IPv6 one, "" for this machine.
func networkOf(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	switch {
	case !ok || tcp.IP.IsLoopback():
		return ""
	case tcp.IP.To4() == nil:
		return tcp.IP.Mask(net.CIDRMask(64, 128)).String()
	}
	return tcp.IP.String()
}

// guest is a connection that counts until it is closed.
type guest struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (g *guest) Close() error {
	defer g.leave()
	return g.Conn.Close()
}

// NetConn is the connection underneath.
func (g *guest) NetConn() net.Conn { return g.Conn }
