package main

import (
	"context"
	"fmt"
	"time"
)

// plan is the extent of the measurement. The goals of the tables apply to the full sizes. A quick run measures the same
// in smaller rounds and omits the largest.
type plan struct {
	rounds int
	// global and zone are the halves of a round.
	global, zone   bool
	idle           time.Duration
	writes, narrow int
	wide           int
	large, growth  bool
	replicas, thin bool
	// enforced means that a real Envoy of another zone enforces what is written at a global.
	enforced bool
	// storm means that ten thousand zones connect at once.
	storm bool
	// many, crowded and failover are the sizes of make bench-large: a hundred thousand policies, ten thousand proxies, and five
	// thousand zones that lose their global.
	many, crowded, failover bool
	// rows are the combinations of zones and policies of the growth.
	rows []extent
	// page means that the page is measured in a Chromium.
	page bool
	// types is the number of rounds of changes of one proxy for each type of policy; 0 means that no type is measured.
	types int
	// policyType limits types to one; empty means all.
	policyType string
	// strangers is the number of rounds beside strangers.
	strangers int
	// envoyCPU is the CPU budget of Envoy for one figure of permissions.
	envoyCPU time.Duration
}

// extent is a number of zones and of policies.
type extent struct {
	zones, policies int
	// frames means that the zones take compressed frames.
	frames bool
}

func fullPlan() plan {
	return plan{rounds: 3, global: true, zone: true, idle: 10 * time.Second, writes: 200, narrow: 1000, wide: 10,
		types: 3, large: true, replicas: true, thin: true, enforced: true, storm: true, strangers: 3, growth: true,
		envoyCPU: 500 * time.Millisecond, rows: growthRows()}
}

// largePlan is what make bench-large measures.
func largePlan() plan {
	return plan{idle: 10 * time.Second, writes: 200, narrow: 1000, wide: 10, large: true, storm: true, many: true, crowded: true,
		failover: true, growth: true, rows: largeRows()}
}

func growthRows() (rows []extent) {
	for _, policies := range []int{100, 1000, 10_000} {
		for _, zones := range []int{10, 100, 1000} {
			rows = append(rows, extent{zones: zones, policies: policies})
		}
	}
	return rows
}

// largeRows are as far as two processors come. Ten thousand zones with a hundred thousand policies each are a billion
// copies, which take 35 GB also in frames.
func largeRows() []extent {
	return []extent{{10_000, 100, true}, {10_000, 1000, true}, {10, 100_000, true}, {100, 100_000, true}, {1000, 100_000, true}}
}

func quickPlan() plan {
	return plan{rounds: 1, global: true, zone: true, idle: 5 * time.Second, writes: 100, narrow: 500, wide: 5,
		types: 1, thin: true, strangers: 2, envoyCPU: 300 * time.Millisecond}
}

// The sizes that have goals.
const (
	usualZones, usualPolicies   = 100, 2000
	usualBurst                  = 300
	largeZones, largePolicies   = 1000, 10_000
	stormZones, stormPolicies   = 10_000, 1000
	zoneProxies, zonePolicies   = 2000, 1000
	manyZonesOf, manyPolicies   = 200, 100_000
	crowdProxies, crowdPolicies = 10_000, 10_000
	failoverZones               = 5000
	fewProxies                  = 20
	// floorWrites is the number of the floor's writes for each of the global's.
	floorWrites = 3
	// goalsFloor is the cost of one write to all streams, in CPU of both ends of the floor, on the machine of the
	// goals.
	goalsFloor = 4400 * time.Microsecond
	// mostOfFloor is the highest accepted cost of a write as a multiple of the floor's, in CPU of both ends, and
	// mostOfStorm that at ten thousand zones.
	mostOfFloor, mostOfStorm = 1.6, 1.8
)

// run measures everything in rounds, so that other load on the machine affects everything alike.
func (b *bench) run(ctx context.Context, p plan) ([]*table, error) {
	global := &table{title: fmt.Sprintf("Global: %d zones, %d policies", usualZones, usualPolicies)}
	floor := &table{title: fmt.Sprintf("Floor: the same bytes over %d bare gRPC streams", usualZones)}
	zone := &table{title: fmt.Sprintf("Zone: %d proxies, %d policies", zoneProxies, zonePolicies)}
	noise := &table{title: "Machine: a fixed piece of work, before each round"}
	for round := range p.rounds {
		wall, cpu := machineNoise()
		noise.add("time", "ms", 0, milliseconds(wall))
		noise.add("time that others took", "ms", 0, milliseconds(wall-cpu))
		pace := 1.0
		if p.global {
			b.say("round %d of %d: global and floor", round+1, p.rounds)
			r, f, err := b.roundOfGlobal(ctx, p)
			if err != nil {
				return nil, fmt.Errorf("global: %w", err)
			}
			addGlobal(global, r)
			addFloor(floor, f, r)
			pace = ratio(f.cpuBothEnds, goalsFloor)
		}
		if p.zone {
			if err := b.roundOfZone(ctx, zone, p); err != nil {
				return nil, fmt.Errorf("zone: %w", err)
			}
		}
		global.pace(pace)
		zone.pace(pace)
	}
	return []*table{global, floor, zone, noise}, nil
}

// roundOfGlobal measures a global and the floor in turns.
func (b *bench) roundOfGlobal(ctx context.Context, p plan) (globalResult, floorCost, error) {
	f, err := startFloor(ctx, usualZones)
	if err != nil {
		return globalResult{}, floorCost{}, fmt.Errorf("floor: %w", err)
	}
	defer f.close()
	r, err := b.measureGlobal(ctx, globalLoad{zones: usualZones, policies: usualPolicies, writes: p.writes,
		burst: usualBurst, idle: p.idle, floor: f})
	return r, f.cost(), err
}

func addGlobal(t *table, r globalResult) {
	t.add("write to last zone, p50", "ms", 3, r.p50)
	t.add("write to last zone, p99", "ms", 10, r.p99)
	t.add("global CPU per write", "ms", 5, milliseconds(r.cpuPerWrite))
	t.add("idle", "cores", 0.005, r.idleCores)
	t.add("initial sync of all zones", "s", 1.5, r.initialSync.Seconds())
	t.add("initial sync, CPU of the global", "s", 0, r.initialCPU.Seconds())
	t.add("burst of 300 writes, until in every zone", "ms", 600, milliseconds(r.burst))
	t.add("burst of 300 writes, until the last is answered", "ms", 0, milliseconds(r.burstStored))
	t.add("burst of 300 writes, messages to one zone", "messages", 0, r.burstMessages)
	t.add("memory per connected zone", "MiB", 0.12, r.perZone)
	t.add("memory per connected zone, in use: heap after a collection, and stacks", "MiB", 0.12, r.inUsePerZone)
	t.add("memory of the global before zones connect", "MiB", 0, r.residentBefore)
	t.add("bytes per write and zone", "bytes", 0, float64(r.bytesPerWrite))
}

func addFloor(t *table, f floorCost, r globalResult) {
	t.add("one write to all streams", "ms", 0, milliseconds(f.wall))
	t.add("CPU per write, both ends", "ms", 0, milliseconds(f.cpuBothEnds))
	t.add("CPU per write, both ends, as a multiple of that where the goals were set", "times", 0,
		ratio(f.cpuBothEnds, goalsFloor))
	t.add("CPU per write, sender", "ms", 0, milliseconds(f.cpuSender))
	t.add("engine's CPU per write, both ends", "ms", 0, milliseconds(r.bothEndsPerWrite))
	t.add("engine's CPU per write as a multiple of the floor's, both ends", "times", mostOfFloor,
		ratio(r.bothEndsPerWrite, f.cpuBothEnds))
	t.add("global's CPU per write as a multiple of the floor's sender", "times", 0, ratio(r.cpuPerWrite, f.cpuSender))
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

func (b *bench) roundOfZone(ctx context.Context, t *table, p plan) error {
	b.say("zone, %d proxies", fewProxies)
	few, err := b.measureZone(ctx, zoneLoad{proxies: fewProxies, policies: zonePolicies, narrow: p.narrow, wide: p.wide})
	if err != nil {
		return err
	}
	b.say("zone, %d proxies", zoneProxies)
	r, err := b.measureZone(ctx, zoneLoad{proxies: zoneProxies, policies: zonePolicies, narrow: p.narrow, wide: p.wide,
		idle: p.idle})
	if err != nil {
		return err
	}
	t.add("all proxies started", "s", 8, r.start.Seconds())
	t.add("all proxies started, CPU of the zone", "s", 0, r.startCPU.Seconds())
	t.add("connections that ended before their proxy had started", "connections", 0, float64(r.again))
	t.add("idle", "cores", 0.01, r.idleCores)
	t.add("change of one proxy, p50", "ms", 5, r.narrow.p50)
	t.add("change of one proxy, p99", "ms", 20, r.narrow.p99)
	t.add("change of one proxy, CPU", "ms", 2, milliseconds(r.narrow.cpuPerWrite))
	t.add("change of one proxy, messages", "messages", 1, r.narrow.messagesPerWrite)
	t.add(fmt.Sprintf("change of one of %d proxies, p50", fewProxies), "ms", 5, few.narrow.p50)
	t.add(fmt.Sprintf("change of one of %d proxies, CPU", fewProxies), "ms", 2, milliseconds(few.narrow.cpuPerWrite))
	t.add("change of all, until at the last", "ms", 500, r.wide.p50)
	t.add("change of all, CPU", "ms", 400, milliseconds(r.wide.cpuPerWrite))
	t.add("memory per proxy", "MiB", 0.1, r.perProxy)
	t.add("memory per proxy, in use: heap after a collection, and stacks", "MiB", 0.065, r.inUsePerProxy)
	return nil
}

// measureStorm measures a global to which ten thousand zones connect at once, all of which take frames.
func (b *bench) measureStorm(ctx context.Context, zones int) (*table, error) {
	few, err := b.measureGlobal(ctx, globalLoad{zones: usualZones, policies: stormPolicies, writes: 50, frames: true})
	if err != nil {
		return nil, err
	}
	r, err := b.measureGlobal(ctx, globalLoad{zones: zones, policies: stormPolicies, writes: 50, frames: true,
		idle: time.Minute}) // one collection of garbage is as much work as ten seconds of all else
	if err != nil {
		return nil, err
	}
	for _, why := range r.whys {
		b.say("%s", why)
	}
	bare, err := floorOf(ctx, zones, r.bytesPerWrite)
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	t := &table{title: fmt.Sprintf("Storm: %d zones that connect at once, %d policies", zones, stormPolicies)}
	t.add("initial sync of all zones", "s", 30, r.initialSync.Seconds())
	t.add("initial sync of all zones, CPU of the global", "s", 0, r.initialCPU.Seconds())
	t.add("sessions that ended before they were in sync", "sessions", 0, float64(r.ended))
	t.add("memory of the global", "MiB", 1024, r.resident)
	t.add("idle", "cores", 0.05, r.idleCores)
	t.add("write to last zone, p50", "ms", 250, r.p50)
	t.add("write to last zone, p99", "ms", 600, r.p99)
	perZone, perFew := r.cpuPerWrite/time.Duration(zones), few.cpuPerWrite/usualZones
	t.add("global CPU per write and zone", "us", 0, milliseconds(perZone)*1000)
	t.add(fmt.Sprintf("global CPU per write and zone, as a multiple of that at %d zones", usualZones), "times", 1.2,
		ratio(perZone, perFew))
	t.add("the floor: one write to as many bare gRPC streams", "ms", 0, milliseconds(bare.wall))
	t.add("the floor, p99", "ms", 0, bare.p99)
	t.add("engine's CPU per write as a multiple of the floor's, both ends", "times", mostOfStorm,
		ratio(r.bothEndsPerWrite, bare.cpuBothEnds))
	return t, nil
}

// growth measures combinations of zone and policy counts, and returns the rows of a Markdown table.
func (b *bench) growth(ctx context.Context, rows []extent) (string, error) {
	out := "| zones | policies | initial sync, s | p50 to last zone, ms | p99, ms | CPU per write, ms | memory, MiB | memory per zone, MiB |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- |\n"
	for _, row := range rows {
		b.say("growth: %d zones, %d policies", row.zones, row.policies)
		const writes = 30
		r, err := b.measureGlobal(ctx, globalLoad{zones: row.zones, policies: row.policies, writes: writes, frames: row.frames})
		if ctx.Err() != nil {
			return "", err
		}
		if err != nil { // the other rows still count
			b.failures = append(b.failures, fmt.Sprintf("growth: %d zones, %d policies: %v", row.zones, row.policies, err))
			out += fmt.Sprintf("| %d | %d | did not finish | | | | | |\n", row.zones, row.policies)
			continue
		}
		out += fmt.Sprintf("| %d | %d | %s | %s | %s | %s | %s | %s |\n", row.zones, row.policies, number(r.initialSync.Seconds()),
			number(r.p50), number(r.p99), number(milliseconds(r.cpuPerWrite)), number(r.resident), number(r.perZone))
	}
	return out, nil
}
