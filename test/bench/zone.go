package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// fillTime is how long a Dataplane and its policy may take to be written before a measurement.
const fillTime = 20 * time.Millisecond

// zoneLoad is the load on a zone.
type zoneLoad struct {
	proxies, policies int
	// narrow is the number of writes that concern one proxy, wide of those that concern all.
	narrow, wide int
	idle         time.Duration
}

// zoneResult is the measured cost.
type zoneResult struct {
	start, startCPU time.Duration
	again           int64   // connections that ended before their proxy had started
	perProxy        float64 // MiB
	inUsePerProxy   float64 // MiB
	idleCores       float64
	narrow, wide    proxyChange
}

// proxyChange is the measured cost of changes of one kind.
type proxyChange struct {
	p50, p99         float64 // milliseconds to the last affected proxy
	cpuPerWrite      time.Duration
	messagesPerWrite float64
	bytesPerMessage  int
}

// measureZone runs one load against a fresh zone without a global.
func (b *bench) measureZone(ctx context.Context, load zoneLoad) (zoneResult, error) {
	ctx, cancel := context.WithTimeout(ctx, patience+time.Duration(load.proxies)*fillTime)
	defer cancel()
	var r zoneResult
	b.started++
	c, err := cluster.New(cluster.Config{Bin: b.bin, Dir: filepath.Join(b.dir, fmt.Sprint(b.started))})
	if err != nil {
		return r, err
	}
	defer c.Close()
	s, err := c.StartZone(ctx, cluster.ZoneConfig{Name: "bench", Args: []string{"--log-level", "warn"}})
	if err != nil {
		return r, err
	}
	if err := fill(ctx, s, load.proxies, dataplane); err != nil {
		return r, err
	}
	if err := fill(ctx, s, load.policies, func(i int) (string, map[string]any) {
		return permission(i, noMark, ofProxy(i%load.proxies))
	}); err != nil {
		return r, err
	}
	return r, r.measure(ctx, s, load)
}

func (r *zoneResult) measure(ctx context.Context, s *cluster.Server, load zoneLoad) error {
	usedBefore, err := inUse(ctx, s)
	if err != nil {
		return err
	}
	before, err := cluster.UsageOf(s.PID())
	if err != nil {
		return err
	}
	start := time.Now()
	p := connectProxies(ctx, s.Address("xds"), load.proxies, newMarks())
	defer p.close()
	if err := p.waitReady(); err != nil {
		return err
	}
	r.start, r.again = time.Since(start), p.again.Load()
	after, err := cluster.UsageOf(s.PID())
	if err != nil {
		return err
	}
	r.startCPU = after.CPU - before.CPU
	r.perProxy = float64(after.Resident-before.Resident) / float64(load.proxies) / mebibyte
	used, err := inUse(ctx, s)
	if err != nil {
		return err
	}
	r.inUsePerProxy = (used - usedBefore) / float64(load.proxies)
	if r.idleCores, err = idleCores(ctx, s, load.idle); err != nil {
		return err
	}
	r.narrow, err = p.change(p.ctx, s, load.narrow, 1, func(i, mark int) (string, map[string]any) {
		return permission(i%load.policies, mark, ofProxy(i%load.policies%load.proxies))
	})
	if err != nil {
		return fmt.Errorf("a change of one: %w", err)
	}
	wide := load.policies // one policy, added and changed
	r.wide, err = p.change(p.ctx, s, load.wide, load.proxies, func(_, mark int) (string, map[string]any) {
		return permission(wide, mark, nil)
	})
	if err != nil {
		return fmt.Errorf("a change of all: %w", err)
	}
	return nil
}

// change writes n documents one after the other. Each reaches the given number of proxies.
func (p *proxies) change(ctx context.Context, s *cluster.Server, n, reach int,
	doc func(i, mark int) (string, map[string]any)) (proxyChange, error) {
	if err := sleep(ctx, settle); err != nil {
		return proxyChange{}, err
	}
	collect()
	before, err := cluster.UsageOf(s.PID())
	if err != nil {
		return proxyChange{}, err
	}
	messages, bytes := p.messages.Load(), p.bytes.Load()
	var last []time.Duration
	for i := range n {
		mark := p.marks.next(reach)
		path, d := doc(i, mark)
		if err := s.API.Put(ctx, path, d); err != nil {
			return proxyChange{}, err
		}
		if err := p.marks.wait(ctx, mark); err != nil {
			return proxyChange{}, err
		}
		last = append(last, p.marks.last(mark))
	}
	after, err := cluster.UsageOf(s.PID())
	if err != nil {
		return proxyChange{}, err
	}
	return proxyChange{
		p50: percentile(last, 50), p99: percentile(last, 99), cpuPerWrite: (after.CPU - before.CPU) / time.Duration(n),
		messagesPerWrite: float64(p.messages.Load()-messages) / float64(n),
		bytesPerMessage:  int((p.bytes.Load() - bytes) / max(p.messages.Load()-messages, 1)),
	}, nil
}
