package main

import (
	"context"
	"fmt"
	"time"
)

// measureLarge measures a global with a thousand zones, in turns with the floor.
func (b *bench) measureLarge(ctx context.Context) (*table, error) {
	f, err := startFloor(ctx, largeZones)
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	defer f.close()
	r, err := b.measureGlobal(ctx, globalLoad{zones: largeZones, policies: largePolicies, writes: 50, floor: f})
	if err != nil {
		return nil, err
	}
	t := &table{title: fmt.Sprintf("Large global: %d zones, %d policies", largeZones, largePolicies)}
	t.add("write to last zone, p50", "ms", 0, r.p50)
	t.add("write to last zone, p99", "ms", 300, r.p99)
	t.add("memory of the global", "MiB", 1024, r.resident)
	t.add("global CPU per write", "ms", 0, milliseconds(r.cpuPerWrite))
	t.add("engine's CPU per write as a multiple of the floor's, both ends", "times", mostOfFloor,
		ratio(r.bothEndsPerWrite, f.cost().cpuBothEnds))
	t.add("initial sync of all zones", "s", 0, r.initialSync.Seconds())
	t.add("sessions that ended before they were in sync", "sessions", 0, float64(r.ended))
	return t, nil
}

// measureMany measures a global with a hundred thousand policies: its zones, its writes, and how long it takes to be ready
// again after it was killed.
func (b *bench) measureMany(ctx context.Context, p plan) (*table, error) {
	c, g, err := b.startGlobal(ctx, manyPolicies)
	if c != nil {
		defer c.Close()
	}
	if err != nil {
		return nil, err
	}
	b.say("%d policies are written", manyPolicies)
	r, err := measureZones(ctx, g, globalLoad{zones: manyZonesOf, policies: manyPolicies, writes: p.writes, frames: true})
	if err != nil {
		return nil, err
	}
	t := &table{title: fmt.Sprintf("Many policies: %d zones, %d policies", manyZonesOf, manyPolicies)}
	t.add("initial sync of all zones", "s", 0, r.initialSync.Seconds())
	t.add("write to last zone, p50", "ms", 0, r.p50)
	t.add("write to last zone, p99", "ms", 30, r.p99)
	t.add("global CPU per write", "ms", 0, milliseconds(r.cpuPerWrite))
	t.add("memory of the global", "MiB", 0, r.resident)
	for range restarts {
		g.Kill()
		start := time.Now()
		if err := g.Start(ctx); err != nil {
			return nil, fmt.Errorf("restart: %w", err)
		}
		t.add("restart after a kill, until it is ready", "s", 5, time.Since(start).Seconds())
	}
	return t, nil
}

// restarts is how often a server is killed and started.
const restarts = 3

// measureCrowded measures a zone with ten thousand proxies and as many policies.
func (b *bench) measureCrowded(ctx context.Context, p plan) (*table, error) {
	r, err := b.measureZone(ctx, zoneLoad{proxies: crowdProxies, policies: crowdPolicies, narrow: p.narrow, wide: p.wide, idle: p.idle})
	if err != nil {
		return nil, err
	}
	bare, err := floorOf(ctx, crowdProxies, r.wide.bytesPerMessage)
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	t := &table{title: fmt.Sprintf("Large zone: %d proxies, %d policies", crowdProxies, crowdPolicies)}
	t.add("all proxies started", "s", 8, r.start.Seconds())
	t.add("all proxies started, CPU of the zone", "s", 0, r.startCPU.Seconds())
	t.add("connections that ended before their proxy had started", "connections", 0, float64(r.again))
	t.add("idle", "cores", 0, r.idleCores)
	t.add("change of one proxy, p50", "ms", 0, r.narrow.p50)
	t.add("change of one proxy, p99", "ms", 5, r.narrow.p99)
	t.add("change of one proxy, CPU", "ms", 0, milliseconds(r.narrow.cpuPerWrite))
	t.add("change of all, until at the last", "ms", 1000, r.wide.p50)
	t.add("change of all, CPU", "ms", 0, milliseconds(r.wide.cpuPerWrite))
	t.add("change of all, size of a message", "bytes", 0, float64(r.wide.bytesPerMessage))
	t.add("the floor: such a message to as many bare gRPC streams", "ms", 0, milliseconds(bare.wall))
	t.add("memory per proxy", "MiB", 0.08, r.perProxy)
	t.add("memory per proxy, in use: heap after a collection, and stacks", "MiB", 0, r.inUsePerProxy)
	return t, nil
}
