package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

const (
	// strangersOfOne connect from one address, strangersOfMany from manyAddresses others.
	strangersOfOne, strangersOfMany, manyAddresses = 1000, 1000, 50
	// strangersGrowth limits a server's growth due to strangers, in MiB. strangersDelay limits the wait of other peers,
	// as a multiple of that without strangers.
	strangersGrowth, strangersDelay = 64, 2
	// gather is how long strangers have to connect before a measurement, and how long the server has after they leave.
	gather = 5 * time.Second
	// besideFor is how long changes are made, one after the other, for one figure.
	besideFor = 6 * time.Second
	// besidePolicies is the number of policies that are changed in turn.
	besidePolicies = 100
)

// measureStrangers measures a global with zones and a zone with proxies, each without and beside connections that
// misbehave. Those come from addresses of 127.0.0.0/8, each of which counts as one.
//
// Real strangers are on other machines. Here they are a process that runs only on idle processors (SCHED_IDLE), so that
// their cost is what the servers spend on them. A process that is equally busy but connects to nothing shows the
// remaining effect.
func (b *bench) measureStrangers(ctx context.Context, p plan) (*table, error) {
	t := &table{title: fmt.Sprintf(
		"Strangers: %d connections of one address and %d of %d others (127.0.0.0/8), beside %d zones and %d proxies",
		strangersOfOne, strangersOfMany, manyAddresses, usualZones, zoneProxies)}
	if err := b.strangersOfGlobal(ctx, t, p); err != nil {
		return nil, fmt.Errorf("global: %w", err)
	}
	if err := b.strangersOfZone(ctx, t, p); err != nil {
		return nil, fmt.Errorf("zone: %w", err)
	}
	return t, nil
}

func (b *bench) strangersOfGlobal(ctx context.Context, t *table, p plan) error {
	c, g, err := b.startGlobal(ctx, usualPolicies)
	if c != nil {
		defer c.Close()
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	z := connectZones(ctx, g.Address("kds"), usualZones, newMarks(), false)
	defer z.close()
	if err := z.waitSynced(patience, usualPolicies); err != nil {
		return err
	}
	s := besideStrangers{table: t, what: "global", server: g, ports: []string{"kds", "api"},
		change: func(i int) (time.Duration, error) {
			return writeOne(z.ctx, g, z, globalLoad{zones: usualZones, policies: usualPolicies}, i)
		}}
	return s.measure(z.ctx, p.strangers)
}

func (b *bench) strangersOfZone(ctx context.Context, t *table, p plan) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	b.started++
	c, err := cluster.New(cluster.Config{Bin: b.bin, Dir: filepath.Join(b.dir, fmt.Sprint(b.started))})
	if err != nil {
		return err
	}
	defer c.Close()
	z, err := c.StartZone(ctx, cluster.ZoneConfig{Name: "bench", Args: []string{"--log-level", "warn"}})
	if err != nil {
		return err
	}
	if err := fill(ctx, z, zoneProxies, dataplane); err != nil {
		return err
	}
	proxies := connectProxies(ctx, z.Address("xds"), zoneProxies, newMarks())
	defer proxies.close()
	if err := proxies.waitReady(); err != nil {
		return err
	}
	s := besideStrangers{table: t, what: "zone", server: z, ports: []string{"xds", "api"},
		change: func(i int) (time.Duration, error) {
			mark := proxies.marks.next(1)
			path, doc := permission(i, mark, ofProxy(i%zoneProxies))
			if err := z.API.Put(proxies.ctx, path, doc); err != nil {
				return 0, err
			}
			if err := proxies.marks.wait(proxies.ctx, mark); err != nil {
				return 0, err
			}
			return proxies.marks.last(mark), nil
		}}
	return s.measure(proxies.ctx, p.strangers)
}

// besideStrangers measures how long a change takes alone, beside strangers, and beside an equally busy process.
type besideStrangers struct {
	table  *table
	what   string
	server *cluster.Server
	ports  []string // the server's ports that strangers connect to
	// change makes change i, and returns how long it took to arrive everywhere.
	change func(i int) (time.Duration, error)
}

// measure adds the figures of some rounds, and the server's growth over all of them.
func (s *besideStrangers) measure(ctx context.Context, rounds int) error {
	if _, err := s.changes(ctx); err != nil { // allocations that happen once do not count
		return err
	}
	before, err := cluster.UsageOf(s.server.PID())
	if err != nil {
		return err
	}
	most := watch(ctx, s.server.PID())
	for range rounds {
		if err := s.round(ctx); err != nil {
			return err
		}
	}
	s.add("memory that strangers make it grow by", "MiB", strangersGrowth, float64(most()-before.Resident)/mebibyte)
	return nil
}

func (s *besideStrangers) round(ctx context.Context) error {
	alone, err := s.changes(ctx)
	if err != nil {
		return err
	}
	mob, err := gatherStrangers(ctx, s.server, s.ports)
	if err != nil {
		return err
	}
	beside, used, err := s.besideMob(ctx, mob)
	if err != nil {
		return err
	}
	idlers, err := gatherIdlers(ctx, used.mob)
	if err != nil {
		return err
	}
	busy, _, err := s.besideMob(ctx, idlers)
	if err != nil {
		return err
	}
	s.add("changes in a round, alone", "changes", 0, float64(len(alone)))
	s.add("change, p50, alone", "ms", 0, percentile(alone, 50))
	s.add("change, p50, beside strangers", "ms", 0, percentile(beside, 50))
	s.add("change, p99, alone", "ms", 0, percentile(alone, 99))
	s.add("change, p99, beside a process as busy as the strangers'", "ms", 0, percentile(busy, 99))
	s.add("change, p99, beside strangers", "ms", 0, percentile(beside, 99))
	s.add("change, p99, as a multiple of that alone", "times", strangersDelay,
		percentile(beside, 99)/percentile(alone, 99))
	s.add("connections of strangers", "a second", 0, used.came)
	s.add("what the server spends on strangers, nothing being changed", "cores", 0, used.server)
	s.add("what the strangers' process takes itself", "cores", 0, used.mob)
	return nil
}

func (s *besideStrangers) add(title, unit string, goal, sample float64) {
	s.table.add(s.what+": "+title, unit, goal, sample)
}

// mobUsage is what a mob did: connections per second, its own CPU in cores, and the server's CPU in cores while nothing
// was changed.
type mobUsage struct{ came, mob, server float64 }

// besideMob makes changes once the mob has gathered, and then disperses it.
func (s *besideStrangers) besideMob(ctx context.Context, m *mob) ([]time.Duration, mobUsage, error) {
	defer m.disperse()
	if err := sleep(ctx, gather/2); err != nil {
		return nil, mobUsage{}, err
	}
	var used mobUsage
	var err error
	if used.server, err = coresOf(s.server.PID(), func() error { return sleep(ctx, gather/2) }); err != nil {
		return nil, used, err
	}
	var took []time.Duration
	used.mob, err = coresOf(m.cmd.Process.Pid, func() error {
		took, err = s.changes(ctx)
		return err
	})
	if err != nil {
		return nil, used, err
	}
	lasted := time.Since(m.since).Seconds()
	used.came = float64(m.disperse()) / lasted
	return took, used, sleep(ctx, gather)
}

// coresOf returns how many processors a process uses during meanwhile.
func coresOf(pid int, meanwhile func() error) (float64, error) {
	before, err := cluster.UsageOf(pid)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := meanwhile(); err != nil {
		return 0, err
	}
	after, err := cluster.UsageOf(pid)
	return (after.CPU - before.CPU).Seconds() / time.Since(start).Seconds(), err
}

// changes makes changes one after the other, and returns how long each took.
func (s *besideStrangers) changes(ctx context.Context) ([]time.Duration, error) {
	if err := sleep(ctx, settle); err != nil {
		return nil, err
	}
	var all []time.Duration
	for begin, i := time.Now(), 0; time.Since(begin) < besideFor; i++ {
		took, err := s.change(i % besidePolicies)
		if err != nil {
			return nil, err
		}
		all = append(all, took)
	}
	return all, nil
}

// watch samples a process's memory. The first call of most ends that and returns the maximum.
func watch(ctx context.Context, pid int) (most func() int64) {
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan int64)
	go func() {
		var most int64
		for {
			if u, err := cluster.UsageOf(pid); err == nil {
				most = max(most, u.Resident)
			}
			select {
			case <-ctx.Done():
				out <- most
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() int64 {
		cancel()
		return <-out
	}
}
