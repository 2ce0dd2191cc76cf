package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/test/cluster"
)

var clockRounds = flag.Int("clock-rounds", 1, "how often TestClocksAreSet sets each clock to each time")

const day = 24 * time.Hour

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
		times = append(times, 365*day, -365*day)
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
	m := newClusterOf(t, programs.bin)
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
		raw, err := os.ReadFile(filepath.Join(programs.bin, program))
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
// alone.
func (c *clocks) setGlobal(ahead time.Duration) {
	before := c.certificates("zone-1")
	c.must(c.ofGlobalServer.Set(ahead))
	c.write()
	if refused := ahead > 30*day; refused {
		for _, zone := range []*cluster.Server{c.zone1, c.zone2} {
			c.says(zone, "the zone's certificate has expired at ", "unless the global's clock is wrong, which says ")
		}
		// A write about a zone now must not cost the zone the credential with which it reconnects.
		_, err := c.JoinString(c.t.Context(), c.global, "zone-1")
		c.must(err)
	} else {
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
// correct.
func (c *clocks) setZones(ahead time.Duration) {
	before, issued := c.certificates("zone-2"), c.issued()
	c.must(c.ofZones.Set(ahead))
	c.write()
	c.agree()
	c.reconnect()
	c.must(c.zone2.Stop(c.t.Context()))
	c.must(c.zone2.Start(c.t.Context()))
	if ahead > day || ahead < 0 {
		c.renewed(issued)
	}
	c.frontend.Close()
	c.becomes(c.frontend, "http-port", true, ownerKRI)
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

// heals checks that everything recovers by itself once all clocks are correct.
func (c *clocks) heals() {
	c.t.Helper()
	c.write()
	c.agree()
	c.eventually("zone-2 to agree", func(ctx context.Context) error { return c.ofGlobal.agrees(ctx, c.zone2) })
	c.frontend.Close()
	c.becomes(c.frontend, "http-port", true, ownerKRI)
	listeners, err := c.backend.Proxy.ListenerStats(c.t.Context())
	c.must(err)
	if !maps.Equal(listeners, c.listeners) {
		c.t.Errorf("the Envoy's listeners moved: %v, then %v", c.listeners, listeners)
	}
	c.sane()
}

// says waits until one line of a server's log contains all parts, in order.
func (c *clocks) says(s *cluster.Server, parts ...string) {
	c.t.Helper()
	c.eventually(s.Name()+" to say "+strings.Join(parts, "..."), func(context.Context) error {
		for _, line := range strings.Split(s.Log(), "\n") {
			rest, all := line, true
			for _, part := range parts {
				_, after, found := strings.Cut(rest, part)
				rest, all = after, all && found
			}
			if all {
				return nil
			}
		}
		return errNotYet
	})
}

// sane checks that no session ends before it begins, and that nothing was modified before it was created.
func (c *clocks) sane() {
	c.t.Helper()
	var page struct {
		Items []struct {
			Name        string
			ZoneInsight struct {
				Subscriptions []struct {
					ConnectTime    time.Time
					DisconnectTime *time.Time
				}
			}
		}
	}
	c.must(c.global.API.Get(c.t.Context(), "/zones/_overview?size=100", &page))
	for _, z := range page.Items {
		open := 0
		for _, s := range z.ZoneInsight.Subscriptions {
			if s.DisconnectTime == nil {
				open++
			} else if s.DisconnectTime.Before(s.ConnectTime) {
				c.t.Errorf("a session of %s began at %s and ended at %s", z.Name, s.ConnectTime, s.DisconnectTime)
			}
		}
		if open != 1 {
			c.t.Errorf("%s has %d open sessions of %d", z.Name, open, len(z.ZoneInsight.Subscriptions))
		}
	}
	for _, server := range []*cluster.Server{c.global, c.zone1} {
		items, err := server.API.List(c.t.Context(), "/meshes/default/meshtimeouts")
		c.must(err)
		for _, it := range items {
			if it.ModificationTime.Before(it.CreationTime) {
				c.t.Errorf("%s on %s was made at %s and changed at %s", it.Name, server.Name(), it.CreationTime,
					it.ModificationTime)
			}
		}
	}
}

// certificates returns the number of unexpired certificates that the global has issued to a zone.
func (c *clocks) certificates(zone string) int {
	c.t.Helper()
	var held struct{ Certificates []struct{ Serial string } }
	c.must(c.global.API.Get(c.t.Context(), "/zones/"+zone+"/_credentials", &held))
	return len(held.Certificates)
}

// issued returns the number of identities that zone-1 has signed for its proxies.
func (c *clocks) issued() float64 {
	c.t.Helper()
	n, err := c.zone1.Metric(c.t.Context(), "causeway_identity_issued_total")
	c.must(err)
	return n
}

// renewed waits until the server has noticed the leap.
func (c *clocks) renewed(before float64) {
	c.t.Helper()
	c.eventually("the identity to be renewed", func(context.Context) error {
		if now := c.issued(); now <= before {
			return fmt.Errorf("%v were issued, as before", now)
		}
		return nil
	})
}

// late starts a workload while the clock is wrong.
func (c *clocks) late() *cluster.Workload {
	c.t.Helper()
	c.round++
	w, err := c.StartWorkload(c.t.Context(), cluster.WorkloadConfig{
		Zone: c.zone1, Mesh: "default", Namespace: "backend-ns", Name: fmt.Sprintf("late-%d", c.round),
		ServiceAccount: "late",
		Labels:         map[string]string{"app": "backend"},
		Inbounds:       []cluster.InboundConfig{{Name: "http-port", Protocol: cluster.ProtocolHTTP}},
	})
	c.must(err)
	return w
}
