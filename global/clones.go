package global

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources"
)

const (
	// cloneMemory is how long a server that lost its zone's session to another is remembered.
	cloneMemory = 15 * time.Minute
	// maxInstances bounds the servers remembered for a zone.
	maxInstances = 8
)

// clones detects two servers that run with the credentials of one zone. Each new session fences off the previous one,
// so they alternate. A restart never brings back a previous instance; a clone does. It is a kds.Observer.
type clones struct {
	now func() time.Time
	log *slog.Logger

	mu    sync.Mutex
	zones map[string]*zoneInstances // guarded by mu
}

type zoneInstances struct {
	// current is the instance of the newest session. before holds earlier instances, with the time at which each lost
	// the session.
	current string
	before  map[string]time.Time
	// returned is when an instance last came back after another. instances holds both.
	returned  time.Time
	instances []string
}

func newClones(now func() time.Time, log *slog.Logger) *clones {
	return &clones{now: now, log: log, zones: map[string]*zoneInstances{}}
}

// Observe implements kds.Observer.
func (c *clones) Observe(e kds.Event) {
	if e.Kind == kds.StreamOpened && e.Peer != nil && e.Peer.Instance != "" {
		c.meet(e.Zone, e.Peer.Instance)
	}
}

// meet records that an instance has the zone's session, here or on another replica.
func (c *clones) meet(zone, instance string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	z := c.zones[zone]
	if z == nil {
		z = &zoneInstances{before: map[string]time.Time{}}
		c.zones[zone] = z
	}
	if z.met(instance, c.now()) {
		c.log.Error("two servers run with the credentials of one zone and alternate: stop one of them; if it is a copy, revoke the zone and let the right one join again",
			"zone", zone, "instances", z.instances)
	}
}

// met records an instance and reports whether it came back after another, for the first time in a while.
func (z *zoneInstances) met(instance string, now time.Time) (clone bool) {
	if instance == z.current {
		return false
	}
	for i, left := range z.before {
		if now.Sub(left) > cloneMemory {
			delete(z.before, i)
		}
	}
	last := z.current
	z.current = instance
	if last != "" && len(z.before) < maxInstances {
		z.before[last] = now
	}
	if _, back := z.before[instance]; !back {
		return false
	}
	delete(z.before, instance)
	clone = now.Sub(z.returned) > time.Minute
	z.returned, z.instances = now, []string{last, instance}
	slices.Sort(z.instances)
	return clone
}

// of returns the instances that currently alternate as a zone, or none if there is no clone.
func (c *clones) of(zone string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if z := c.zones[zone]; z != nil && !z.returned.IsZero() && c.now().Sub(z.returned) < cloneMemory {
		return slices.Clone(z.instances)
	}
	return nil
}

// forget drops a deleted zone.
func (c *clones) forget(zone string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.zones, zone)
}

// conditions adds a condition to the Zone of a clone.
func (c *clones) conditions(r *resources.Resource) []resources.Condition {
	if r.Type != resources.TypeZone {
		return nil
	}
	instances := c.of(r.Name)
	if len(instances) == 0 {
		return nil
	}
	return []resources.Condition{{
		Type: resources.ConditionCloned, Status: resources.ConditionTrue, Reason: "TwoServers",
		Message: fmt.Sprintf("two servers run with the credentials of this zone and take turns (instances %s and %s): stop one of them", instances[0], instances[1]),
	}}
}

var clonedDesc = prometheus.NewDesc("causeway_zone_cloned",
	"1 while two servers alternate with the credentials of one zone.", []string{"zone"}, nil)

// Describe implements prometheus.Collector.
func (c *clones) Describe(out chan<- *prometheus.Desc) { out <- clonedDesc }

// Collect implements prometheus.Collector.
func (c *clones) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	var names []string
	for zone := range c.zones {
		names = append(names, zone)
	}
	c.mu.Unlock()
	for _, zone := range names {
		if len(c.of(zone)) > 0 {
			out <- prometheus.MustNewConstMetric(clonedDesc, prometheus.GaugeValue, 1, zone)
		}
	}
}
