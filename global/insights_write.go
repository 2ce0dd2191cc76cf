package global

import (
	"context"
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/resources/systempb"
)

const (
	// insightInterval is the shortest time between two writes of counters. The first write after a pause is immediate.
	// With thousands of zones, the pause is insightShare times as long as the write took, up to longestInsightPause.
	insightInterval, longestInsightPause = time.Second, 10 * time.Second
	insightShare                         = 20
)

// run writes dirty zones until ctx ends: those that connected or disconnected at once, counters at intervals. While idle,
// it waits without a timer.
func (i *insights) run(ctx context.Context) error {
	wake, paused := i.wake, (<-chan time.Time)(nil)
	for {
		select {
		case <-i.urgent:
			i.write(ctx, i.take(&i.soon))
		case <-wake:
			began := time.Now()
			i.flush(ctx)
			wake, paused = nil, time.After(pauseAfter(time.Since(began)))
		case <-paused:
			wake, paused = i.wake, nil
		case <-ctx.Done():
			return nil
		}
	}
}

// pauseAfter returns how long counters are not written after a write that took so long.
func pauseAfter(took time.Duration) time.Duration {
	return min(max(insightInterval, insightShare*took), longestInsightPause)
}

// flush writes all dirty zones.
func (i *insights) flush(ctx context.Context) {
	i.write(ctx, append(i.take(&i.soon), i.take(&i.dirty)...))
}

// take empties a list of zones.
func (i *insights) take(list *[]string) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	zones := *list
	*list = nil
	return zones
}

// write writes those zones that are dirty, as one batch.
func (i *insights) write(ctx context.Context, dirty []string) {
	var b store.Batch
	for _, zone := range dirty {
		insight := i.taken(zone)
		if insight == nil {
			continue
		}
		// Encode without the lock, which every acknowledgement takes.
		spec, err := i.encode(resources.TypeZoneInsight, insight)
		if err != nil {
			i.log.Error("cannot encode a zone's insight", "zone", zone, "error", err)
			continue
		}
		b.Ops = append(b.Ops,
			store.Op{Put: &resources.Resource{Key: insightKey(zone), Labels: i.labels(zone), Spec: spec}})
	}
	if len(b.Ops) == 0 {
		return
	}
	if _, err := i.status.Apply(ctx, b); err != nil && ctx.Err() == nil {
		i.log.Error("cannot write the zones' status", "error", err)
	}
}

// taken returns the insight to write for a dirty zone, or nil if there is none.
func (i *insights) taken(zone string) *systempb.ZoneInsight {
	i.mu.Lock()
	defer i.mu.Unlock()
	z := i.zones[zone]
	if z == nil || !z.dirty {
		return nil
	}
	z.dirty, z.refusing = false, true // until it is known
	if i.has != nil && !i.has(zone) {
		return nil
	}
	return i.insight(zone, z)
}

// labels returns the labels of a zone's insight. What is refused from now on marks the zone again.
func (i *insights) labels(zone string) map[string]string {
	refused := i.refused(zone)
	if refused != "" {
		return map[string]string{resources.LabelRefused: refused}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if z := i.zones[zone]; z != nil {
		z.refusing = false
	}
	return map[string]string{}
}
