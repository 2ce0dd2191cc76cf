package e2e

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/causeway-mesh/causeway/test/cluster"
)

var clockRounds = flag.Int("clock-rounds", 1, "how often TestClocksAreSet sets each clock to each time")

const day = 24 * time.Hour

// clocks is a mesh whose global has one clock, and whose zones have another. The test, the Envoys and the clients go by the machine's.
type clocks struct {
	*crash
	ofGlobalServer, ofZones *cluster.Clock
	link                    *cluster.Link
	listeners               map[string]uint64
	round                   int
}

// TestClocksAreSet: the wall clock of the global, or of the zones, is set while they run: forward and back, also past the end of
// certificates. Both sides go on writing, links break and servers start meanwhile. What is refused names the clock; nothing is deleted, no
// listener moves, certificates are renewed a few times and not on and on; and with the clock set right, all is as it was, by itself.
func TestClocksAreSet(t *testing.T) {
	t.Parallel()
	c := newClocks(t)
	for round := range *clockRounds {
		for _, ahead := range []time.Duration{time.Hour, 40 * day, -time.Hour, -2 * day} {
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
		m.zones[name], err = m.StartZone(t.Context(), cluster.ZoneConfig{Name: name, Global: m.global, Link: c.link, Clock: c.ofZones})
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

// setGlobal: past the end of the zones' certificates they are refused, and both sides go on alone.
func (c *clocks) setGlobal(ahead time.Duration) {
	before := c.certificates("zone-1")
	c.must(c.ofGlobalServer.Set(ahead))
	c.write()
	if refused := ahead > 30*day; refused {
		for _, zone := range []*cluster.Server{c.zone1, c.zone2} {
			c.says(zone, "the zone's certificate has expired at ", "unless the global's clock is wrong, which says ")
		}
		// What is written of a zone now must not cost it what it comes back by.
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

// setZones: also their proxies are served, one that comes meanwhile too, once the clock is right.
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
	// Once for the leap, once for the way back, and the late one's two; at the end nothing is due.
	if after := c.issued(); after > issued+4 {
		c.t.Errorf("%v identities were issued for two proxies", after-issued)
	}
	if after := c.certificates("zone-2"); after > before+3 {
		c.t.Errorf("the zone had %d certificates, and has %d", before, after)
	}
}

// write has both sides take writes for a while.
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

// reconnect breaks the links of both zones, and wants sessions that carry what was written meanwhile.
func (c *clocks) reconnect() {
	c.t.Helper()
	c.link.Set(cluster.Weather{Cut: true})
	c.write()
	c.link.Set(cluster.Weather{})
	c.agree()
}

// heals: with all clocks right everything is as it was, and nobody does anything for it.
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

// says waits until a server has said something in one line of its log.
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

// sane: no session ends before it begins, and nothing was changed before it was made.
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
				c.t.Errorf("%s on %s was made at %s and changed at %s", it.Name, server.Name(), it.CreationTime, it.ModificationTime)
			}
		}
	}
}

// certificates is how many certificates the global has given to a zone, and the zone has not outlived.
func (c *clocks) certificates(zone string) int {
	c.t.Helper()
	var held struct{ Certificates []struct{ Serial string } }
	c.must(c.global.API.Get(c.t.Context(), "/zones/"+zone+"/_credentials", &held))
	return len(held.Certificates)
}

// issued is how many identities zone-1 has signed for its proxies.
func (c *clocks) issued() float64 {
	c.t.Helper()
	n, err := c.zone1.Metric(c.t.Context(), "causeway_identity_issued_total")
	c.must(err)
	return n
}

// renewed waits until the leap was noticed.
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
		Zone: c.zone1, Mesh: "default", Namespace: "backend-ns", Name: fmt.Sprintf("late-%d", c.round), ServiceAccount: "late",
		Labels: map[string]string{"app": "backend"}, Inbounds: []cluster.InboundConfig{{Name: "http-port", Protocol: cluster.ProtocolHTTP}},
	})
	c.must(err)
	return w
}
