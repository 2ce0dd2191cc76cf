package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// patience limits one phase of a measurement.
const patience = 4 * time.Minute

// globalLoad is the load on a global.
type globalLoad struct {
	zones, policies, writes, burst int
	idle                           time.Duration
	// frames means that the zones take compressed frames.
	frames bool
	// floor, if not nil, is measured in turns with the global, so that both meet the same machine.
	floor *floor
}

// globalResult is the measured cost.
type globalResult struct {
	initialSync, initialCPU       time.Duration
	idleCores                     float64
	p50, p99                      float64 // milliseconds to the last zone
	cpuPerWrite, bothEndsPerWrite time.Duration
	bytesPerWrite                 int     // to one zone
	firstBytes                    float64 // to one zone, of its first state
	burst, burstStored            time.Duration
	burstMessages                 float64 // to one zone
	perZone, resident             float64 // MiB
	inUsePerZone                  float64 // MiB
	residentBefore                float64
	ended                         int64 // sessions that ended early
	whys                          []string
}

// startGlobal runs a separate global with policies in it.
func (b *bench) startGlobal(ctx context.Context, policies int) (*cluster.Cluster, *cluster.Server, error) {
	b.started++
	c, err := cluster.New(cluster.Config{Bin: b.bin, Dir: filepath.Join(b.dir, fmt.Sprint(b.started))})
	if err != nil {
		return nil, nil, err
	}
	g, err := c.StartGlobal(ctx,
		cluster.GlobalConfig{Anonymous: true, Args: []string{"--kds-tls=false", "--log-level", "warn"}})
	if err != nil {
		return c, nil, err
	}
	return c, g, fill(ctx, g, policies, func(i int) (string, map[string]any) { return permission(i, noMark, nil) })
}

// measureGlobal runs one load against a fresh global.
func (b *bench) measureGlobal(ctx context.Context, load globalLoad) (globalResult, error) {
	c, g, err := b.startGlobal(ctx, load.policies)
	if c != nil {
		defer c.Close()
	}
	if err != nil {
		return globalResult{}, err
	}
	return measureZones(ctx, g, load)
}

// measureZones connects zones to g, which holds the policies, and disconnects them after the measurement.
func measureZones(ctx context.Context, g *cluster.Server, load globalLoad) (globalResult, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var r globalResult
	usedBefore, err := inUse(ctx, g)
	if err != nil {
		return r, err
	}
	before, err := cluster.UsageOf(g.PID())
	if err != nil {
		return r, err
	}
	m, start := newMarks(), time.Now()
	z := connectZones(ctx, g.Address("kds"), load.zones, m, load.frames)
	defer z.close()
	if err := z.waitSynced(patience, load.policies); err != nil {
		return r, err
	}
	r.initialSync, r.ended, r.whys = time.Since(start), z.ended.Load(), z.reasons()
	after, err := cluster.UsageOf(g.PID())
	if err != nil {
		return r, err
	}
	r.initialCPU = after.CPU - before.CPU
	r.firstBytes = float64(z.bytes.Load()) / float64(load.zones)
	r.perZone = float64(after.Resident-before.Resident) / float64(load.zones) / mebibyte
	r.residentBefore = float64(before.Resident) / mebibyte
	used, err := inUse(ctx, g)
	if err != nil {
		return r, err
	}
	r.inUsePerZone = (used - usedBefore) / float64(load.zones)
	if err := r.measureIdle(ctx, g, load); err != nil {
		return r, err
	}
	if err := r.measureWrites(z.ctx, g, z, load); err != nil {
		return r, err
	}
	return r, r.measureBurst(z.ctx, g, z, load)
}

// settle is the wait before idling, for acknowledgements still under way.
const settle = time.Second

func (r *globalResult) measureIdle(ctx context.Context, g *cluster.Server, load globalLoad) error {
	cores, err := idleCores(ctx, g, load.idle)
	r.idleCores = cores
	return err
}

// idleCores returns the CPU that s uses while nothing happens, in cores.
func idleCores(ctx context.Context, s *cluster.Server, during time.Duration) (float64, error) {
	if err := sleep(ctx, settle); err != nil || during == 0 {
		return 0, err
	}
	before, err := cluster.UsageOf(s.PID())
	if err != nil {
		return 0, err
	}
	if err := sleep(ctx, during); err != nil {
		return 0, err
	}
	after, err := cluster.UsageOf(s.PID())
	return (after.CPU - before.CPU).Seconds() / during.Seconds(), err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

const (
	// turn is how many writes are measured before the floor's turn.
	turn = 10
	// afterTurn is the wait before the cost of a turn is read, which includes its last acknowledgements.
	afterTurn = 5 * time.Millisecond
)

func (r *globalResult) measureWrites(ctx context.Context, g *cluster.Server, z *zones, load globalLoad) error {
	before, err := cluster.UsageOf(g.PID())
	if err != nil {
		return err
	}
	bytes := z.bytes.Load()
	var last []time.Duration
	var own time.Duration
	for done := 0; done < load.writes; {
		some := min(turn, load.writes-done)
		collect()
		ownBefore := ownCPU()
		for i := range some {
			took, err := writeOne(ctx, g, z, load, done+i)
			if err != nil {
				return err
			}
			last = append(last, took)
		}
		if err := sleep(ctx, afterTurn); err != nil {
			return err
		}
		own += ownCPU() - ownBefore
		done += some
		r.bytesPerWrite = int(z.bytes.Load()-bytes) / done / load.zones
		if load.floor != nil {
			if err := load.floor.write(ctx, some*floorWrites, r.bytesPerWrite); err != nil {
				return fmt.Errorf("floor: %w", err)
			}
		}
	}
	after, err := cluster.UsageOf(g.PID())
	if err != nil {
		return err
	}
	n := time.Duration(load.writes)
	r.cpuPerWrite, r.bothEndsPerWrite = (after.CPU-before.CPU)/n, (after.CPU-before.CPU+own)/n
	r.resident = float64(after.Resident) / mebibyte
	r.p50, r.p99 = percentile(last, 50), percentile(last, 99)
	return nil
}

// writeOne rewrites policy i and returns how long it took to the last zone.
func writeOne(ctx context.Context, g *cluster.Server, z *zones, load globalLoad, i int) (time.Duration, error) {
	n := z.marks.next(load.zones)
	path, doc := permission(i%load.policies, n, nil)
	if err := g.API.Put(ctx, path, doc); err != nil {
		return 0, err
	}
	if err := z.marks.wait(ctx, n); err != nil {
		return 0, err
	}
	return z.marks.last(n), nil
}

// measureBurst writes new policies back to back.
func (r *globalResult) measureBurst(ctx context.Context, g *cluster.Server, z *zones, load globalLoad) error {
	if load.burst == 0 {
		return nil
	}
	messages := z.messages.Load()
	start, first := time.Now(), 0
	for i := range load.burst {
		n := z.marks.next(load.zones)
		if i == 0 {
			first = n
		}
		path, doc := permission(load.policies+i, n, nil)
		if err := g.API.Put(ctx, path, doc); err != nil {
			return err
		}
	}
	r.burstStored = time.Since(start)
	err := z.marks.wait(ctx, first)
	r.burst = time.Since(start)
	r.burstMessages = float64(z.messages.Load()-messages) / float64(load.zones)
	return err
}
