package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/causeway-mesh/causeway/kds"
	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/resources/store"
	"github.com/causeway-mesh/causeway/test/cluster"
)

// The link that the goals of thin links are for.
const (
	thinRate     = 1_000_000 / 8 // bytes a second
	thinDelay    = 150 * time.Millisecond
	thinPolicies = usualPolicies
	thinWrites   = 10
)

// thinZone is the real zone's side of KDS behind a link, with a store in memory.
type thinZone struct {
	link  *cluster.Link
	store store.Store
	stop  context.CancelFunc
	ended chan error
}

func startThinZone(ctx context.Context, name, target string, weather cluster.Weather) (*thinZone, error) {
	link, err := cluster.NewLink(ctx, target)
	if err != nil {
		return nil, err
	}
	link.Set(weather)
	z := &thinZone{link: link, store: store.NewMemory(), ended: make(chan error, 1)}
	ctx, z.stop = context.WithCancel(ctx)
	zone := kds.NewZone(kds.ZoneConfig{Zone: name, Target: link.Address(), Store: z.store})
	go func() { z.ended <- zone.Run(ctx) }()
	return z, nil
}

func (z *thinZone) close() error {
	z.stop()
	err := <-z.ended
	if closed := z.link.Close(); err == nil {
		err = closed
	}
	return err
}

// await returns once the store is as wanted.
func (z *thinZone) await(ctx context.Context, wanted func(store.Snapshot) bool) error {
	for {
		_, changed := z.store.Changed()
		if wanted(z.store.Snapshot()) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("a zone behind a link: %w", context.Cause(ctx))
		}
	}
}

// first returns once the zone has all policies, and how long that took from start.
func (z *thinZone) first(ctx context.Context, start time.Time) (time.Duration, error) {
	err := z.await(ctx, func(s store.Snapshot) bool {
		n := 0
		for range s.List(store.Query{Type: countedType}) {
			n++
		}
		return n >= thinPolicies
	})
	return time.Since(start), err
}

// change rewrites policy i, and returns how long it took until the zone had it.
func (z *thinZone) change(ctx context.Context, g *cluster.Server, i int) (time.Duration, error) {
	path, doc := permission(i, i, nil)
	spec, err := json.Marshal(doc["spec"])
	if err != nil {
		return 0, err
	}
	want, err := resources.NewSpec(countedType, spec)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := g.API.Put(ctx, path, doc); err != nil {
		return 0, err
	}
	err = z.await(ctx, func(s store.Snapshot) bool {
		for r := range s.List(store.Query{Type: countedType}) {
			if r.DisplayName() == doc["name"] {
				return r.Spec.Equal(want)
			}
		}
		return false
	})
	return time.Since(start), err
}

// measureThin measures what one zone's link carries, how long it takes over a thin one, and what compressed frames cost
// and spare a global of a hundred zones.
func (b *bench) measureThin(ctx context.Context, p plan) (*table, error) {
	t := &table{title: fmt.Sprintf("Thin links: %d policies; 1 Mbit/s, 300 ms there and back", thinPolicies)}
	plain, err := b.measureGlobal(ctx, globalLoad{zones: usualZones, policies: thinPolicies, writes: p.writes})
	if err != nil {
		return nil, err
	}
	framed, err := b.measureGlobal(ctx, globalLoad{zones: usualZones, policies: thinPolicies, writes: p.writes, frames: true})
	if err != nil {
		return nil, err
	}
	c, g, err := b.startGlobal(ctx, thinPolicies)
	if c != nil {
		defer c.Close()
	}
	if err != nil {
		return nil, err
	}
	if err := b.thin(ctx, t, g, plain.firstBytes); err != nil {
		return nil, err
	}
	t.add("100 zones: bytes of a first state, to a zone of another maker", "kB", 0, plain.firstBytes/1000)
	t.add("100 zones: initial sync, CPU of the global, zones that take no frames", "ms", 0, milliseconds(plain.initialCPU))
	t.add("100 zones: initial sync, CPU of the global, zones that take frames", "ms", 0, milliseconds(framed.initialCPU))
	t.add("100 zones: initial sync, CPU of the global, frames as a multiple", "times", 1, ratio(framed.initialCPU, plain.initialCPU))
	t.add("100 zones: CPU per write, zones that take no frames", "ms", 0, milliseconds(plain.cpuPerWrite))
	t.add("100 zones: CPU per write, zones that take frames", "ms", 0, milliseconds(framed.cpuPerWrite))
	return t, nil
}

// thin measures one zone behind a thin link.
func (b *bench) thin(ctx context.Context, t *table, g *cluster.Server, plainBytes float64) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	start := time.Now()
	z, err := startThinZone(ctx, "thin", g.Address("kds"), cluster.Weather{BytesPerSecond: thinRate, Delay: thinDelay})
	if err != nil {
		return err
	}
	defer func() { _ = z.close() }()
	took, err := z.first(ctx, start)
	if err != nil {
		return err
	}
	if err := sleep(ctx, settle); err != nil {
		return err
	}
	_, down := z.link.Passed()
	t.add("first state", "s", 2, took.Seconds())
	t.add("bytes of the first state, all that the connection carried down", "kB", 0, float64(down)/1000)
	t.add("bytes of the first state as a share of those without frames", "times", 0.08, float64(down)/plainBytes)
	var all []time.Duration
	upBefore, downBefore := z.link.Passed()
	for i := range thinWrites {
		took, err := z.change(ctx, g, i)
		if err != nil {
			return err
		}
		all = append(all, took)
		if err := sleep(ctx, 4*thinDelay); err != nil { // until it is answered: a change behind another waits for that
			return err
		}
	}
	if err := sleep(ctx, settle); err != nil {
		return err
	}
	up, down := z.link.Passed()
	t.add("a change of one policy, p50", "ms", 0, percentile(all, 50))
	t.add("a change of one policy, slowest", "ms", 350, percentile(all, 100))
	t.add("bytes of a change, down", "bytes", 0, float64(down-downBefore)/thinWrites)
	t.add("bytes of a change and its answer", "bytes", 250, float64(down-downBefore+up-upBefore)/thinWrites)
	return nil
}
