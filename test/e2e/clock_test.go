package e2e

import (
	"bytes"
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/test/cluster"
)

var clockRounds = flag.Int("clock-rounds", 1, "how often TestClocksAreSet sets each clock to each time")

const (
	day = 24 * time.Hour
	// year is for how long a server's certificate is good: one whose clock is further off is refused, or refuses.
	year = 365 * day
	// madeUp is how far a zone's clock can be set back while identities stay good for others.
	madeUp = 7 * day
)

// clocks is a mesh whose global has one clock, and whose zones share another. The test, the Envoys and the clients use
// the machine's.
type clocks struct {
	*crash
	ofGlobalServer, ofZones *cluster.Clock
	link                    *cluster.Link
	listeners               map[string]uint64
	round                   int
}

// TestClocksAreSet sets the wall clock of the global, or of the zones, while they run: forward and back, also past the
// expiry of certificates. Both sides continue to write, links break and servers restart meanwhile. Refusals name the
// clock, nothing is deleted, no listener changes, and certificates are renewed only a few times. Once the clock is
// correct, everything recovers by itself.
func TestClocksAreSet(t *testing.T) {
	t.Parallel()
	c := newClocks(t)
	times := []time.Duration{time.Hour, 40 * day, -time.Hour, -2 * day}
	if *faultsLong {
		times = append(times, year, -year)
	}
	for round := range *clockRounds {
		for _, ahead := range times {
			t.Logf("round %d: the global's clock is set by %s", round, ahead)
			c.setGlobal(ahead)
			t.Logf("round %d: the zones' clock is set by %s", round, ahead)
			c.setZones(ahead)
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("%d acknowledged writes on the global, %d in the zone", c.ofGlobal.written, c.ofZone.written)
}

// TestShippedProgramsHaveTheMachinesClock gives a clock to the programs that users get. They do not look at it: nobody
// who can set their environment sets their time.
func TestShippedProgramsHaveTheMachinesClock(t *testing.T) {
	t.Parallel()
	m := newClusterOf(t, programs.bin())
	clock, err := cluster.NewClock(filepath.Join(t.TempDir(), "clock"))
	m.must(err)
	t.Cleanup(func() { _ = clock.Close() })
	m.must(clock.Set(40 * day))
	m.global, err = m.StartGlobal(t.Context(), cluster.GlobalConfig{Clock: clock})
	m.must(err)
	var insight struct{ CreatedAt time.Time }
	m.must(m.global.API.Get(t.Context(), "/global-insight", &insight))
	if off := time.Until(insight.CreatedAt).Abs(); off > time.Hour {
		t.Errorf("the global's clock is %s from the machine's", off)
	}
	for _, program := range []string{"causeway-global", "causeway-zone", "causewayctl"} {
		raw, err := os.ReadFile(filepath.Join(programs.bin(), program))
		m.must(err)
		if bytes.Contains(raw, []byte(cluster.ClockVariable)) {
			t.Errorf("%s knows of %s", program, cluster.ClockVariable)
		}
	}
}

func newClocks(t *testing.T) *clocks {
	t.Helper()
	bin, dir := filepath.Join(t.TempDir(), "bin"), t.TempDir()
	began := time.Now()
	if err := cluster.BuildWithClocks(t.Context(), bin); err != nil {
		t.Fatal(err)
	}
	t.Logf("the programs were built in %s", time.Since(began).Round(time.Second))
	m := newClusterOf(t, bin)
	clock := func(name string) *cluster.Clock {
		made, err := cluster.NewClock(filepath.Join(dir, name))
		m.must(err)
		t.Cleanup(func() { _ = made.Close() })
		return made
	}
	c := &clocks{ofGlobalServer: clock("global"), ofZones: clock("zones")}
	var err error
	m.global, err = m.StartGlobal(t.Context(), cluster.GlobalConfig{Clock: c.ofGlobalServer})
	m.must(err)
	c.link, err = cluster.NewLink(t.Context(), m.global.Address("kds"))
	m.must(err)
	t.Cleanup(func() { _ = c.link.Close() })
	for _, name := range []string{"zone-1", "zone-2"} {
		m.zones[name], err = m.StartZone(t.Context(), cluster.ZoneConfig{Name: name, Global: m.global, Link: c.link,
			Clock: c.ofZones})
		m.must(err)
		m.must(m.zones[name].WaitMesh(t.Context(), "default"))
	}
	c.crash = crashOf(m)
	c.listeners, err = c.backend.Proxy.ListenerStats(t.Context())
	m.must(err)
	c.write()
	c.agree()
	return c
}

// setGlobal sets the global's clock. Past the expiry of their certificates, zones are refused, and both sides continue
// alone. So they do if the certificate that it makes meanwhile ends before their time.
func (c *clocks) setGlobal(ahead time.Duration) {
	before := c.certificates("zone-1")
	c.must(c.ofGlobalServer.Set(ahead))
	c.write()
	switch {
	case ahead > 30*day:
		for _, zone := range []*cluster.Server{c.zone1, c.zone2} {
			c.says(zone, "the zone's certificate has expired at ", "unless the global's clock is wrong, which says ")
		}
		// A write about a zone now must not cost the zone the credential with which it reconnects.
		_, err := c.JoinString(c.t.Context(), c.global, "zone-1")
		c.must(err)
	case ahead <= -year:
		c.agree()
	default:
		c.agree()
		c.reconnect()
	}
	c.must(c.global.Stop(c.t.Context()))
	c.must(c.global.Start(c.t.Context()))
	c.write()
	c.must(c.ofGlobalServer.Set(0))
	c.heals()
	if after := c.certificates("zone-1"); after > before+2 {
		c.t.Errorf("the zone had %d certificates, and has %d", before, after)
	}
}

// setZones sets the zones' clock. Their proxies stay served, and so is one that starts meanwhile, once the clock is
// correct. A zone for which the global's certificate is not good says so, with its time.
func (c *clocks) setZones(ahead time.Duration) {
	before, issued := c.certificates("zone-2"), c.issued()
	c.must(c.ofZones.Set(ahead))
	c.write()
	c.agree()
	if ahead.Abs() < year {
		c.reconnect()
	} else {
		c.link.Set(cluster.Weather{Cut: true})
		c.write()
		c.link.Set(cluster.Weather{})
		wrong := " is after "
		if ahead < 0 {
			wrong = " is before " // the zone's time is never before that of its own certificate
		}
		c.says(c.zone1, "certificate has expired or is not yet valid: current time ", wrong)
	}
	c.must(c.zone2.Stop(c.t.Context()))
	c.must(c.zone2.Start(c.t.Context()))
	if ahead > day || ahead < 0 {
		c.renewed(issued)
	}
	c.frontend.Close()
	if ahead > -madeUp { // further back, new identities have ended for those whose clock is right
		c.becomes(c.frontend, "http-port", true, ownerKRI)
	}
	late := c.late()
	c.must(c.ofZones.Set(0))
	c.heals()
	c.eventually("the proxy that came meanwhile to be believed", func(ctx context.Context) error {
		c.frontend.Close()
		_, _, err := c.frontend.Get(ctx, late.Inbound("http-port").Port, "/")
		return err
	})
	late.Proxy.Kill()
	late.Close()
	// One for the leap, one for the way back, and two for the late proxy. At the end nothing is due.
	if after := c.issued(); after > issued+4 {
		c.t.Errorf("%v identities were issued for two proxies", after-issued)
	}
	if after := c.certificates("zone-2"); after > before+3 {
		c.t.Errorf("the zone had %d certificates, and has %d", before, after)
	}
}

// write writes on both sides for a while.
func (c *clocks) write() {
	c.t.Helper()
	ctx, stop := context.WithTimeout(c.t.Context(), 200*time.Millisecond)
	defer stop()
	var g errgroup.Group
	for _, l := range []*ledger{c.ofGlobal, c.ofZone} {
		rng := rand.New(rand.NewPCG(c.rng.Uint64(), 0))
		g.Go(func() error { return l.write(ctx, rng) })
	}
	c.must(g.Wait())
	c.must(c.ofGlobal.check(c.t.Context()))
	c.must(c.ofZone.check(c.t.Context()))
}

// reconnect breaks the links of both zones, and expects new sessions to carry what was written meanwhile.
func (c *clocks) reconnect() {
	c.t.Helper()
	c.link.Set(cluster.Weather{Cut: true})
	c.write()
	c.link.Set(cluster.Weather{})
	c.agree()
}
