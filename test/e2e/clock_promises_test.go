package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

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
