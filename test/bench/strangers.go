package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/strangers"
)

const (
	// strangersOfOne come from one address, strangersOfMany from manyAddresses others.
	strangersOfOne, strangersOfMany, manyAddresses = 1000, 1000, 50
	// strangersGrowth is how much a server may grow by them, in MiB; strangersDelay how many times as long others may wait.
	strangersGrowth, strangersDelay = 64, 2
	// gather is how long strangers are given to come before anything is measured beside them.
	gather = 5 * time.Second
)

// measureStrangers measures a global with zones and a zone with proxies, each without and beside connections that misbehave. Those come
// from addresses of 127.0.0.0/8, each of which counts as one.
func (b *bench) measureStrangers(ctx context.Context, p plan) (*table, error) {
	t := &table{title: fmt.Sprintf("Strangers: %d connections of one address and %d of %d others (127.0.0.0/8), beside %d zones and %d proxies",
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
	z := connectZones(ctx, g.Address("kds"), usualZones, newMarks())
	defer z.close()
	if err := z.waitSynced(patience, usualPolicies); err != nil {
		return err
	}
	return beside(z.ctx, t, "global", g, []string{"kds", "api"}, func() (float64, error) {
		var last []time.Duration
		for i := range p.writes {
			took, err := writeOne(z.ctx, g, z, globalLoad{zones: usualZones, policies: usualPolicies}, i)
			if err != nil {
				return 0, err
			}
			last = append(last, took)
		}
		return percentile(last, 99), nil
	})
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
	s, err := c.StartZone(ctx, cluster.ZoneConfig{Name: "bench", Args: []string{"--log-level", "error"}})
	if err != nil {
		return err
	}
	if err := fill(ctx, s, zoneProxies, dataplane); err != nil {
		return err
	}
	proxies := connectProxies(ctx, s.Address("xds"), zoneProxies, newMarks())
	defer proxies.close()
	if err := proxies.waitReady(patience); err != nil {
		return err
	}
	return beside(proxies.ctx, t, "zone", s, []string{"xds", "api"}, func() (float64, error) {
		change, err := proxies.change(s, p.narrow, 1, func(i, mark int) (string, map[string]any) {
			return permission(i, mark, ofProxy(i%zoneProxies))
		})
		return change.p99, err
	})
}

// beside measures how long a change takes without strangers and beside them, and by how much s grows.
func beside(ctx context.Context, t *table, what string, s *cluster.Server, ports []string, change func() (p99 float64, err error)) error {
	if _, err := change(); err != nil { // what is made once is made
		return err
	}
	alone, err := change()
	if err != nil {
		return err
	}
	before, err := usageOf(s.PID())
	if err != nil {
		return err
	}
	disperse, err := gatherStrangers(ctx, s, ports)
	if err != nil {
		return err
	}
	defer disperse()
	most := watch(ctx, s.PID())
	if err := sleep(ctx, gather); err != nil {
		return err
	}
	p99, err := change()
	if err != nil {
		return err
	}
	grown := float64(most()-before.resident) / mebibyte
	t.add(what+": change, p99, alone", "ms", 0, alone)
	t.add(what+": change, p99, beside strangers", "ms", 0, p99)
	t.add(what+": change, p99, as a multiple of that alone", "times", strangersDelay, p99/alone)
	t.add(what+": memory that strangers make it grow by", "MiB", strangersGrowth, grown)
	return nil
}

// gatherStrangers lets them come, from a process of their own that gives way to all others; what it returns ends it and waits.
func gatherStrangers(ctx context.Context, s *cluster.Server, ports []string) (disperse func(), err error) {
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var at []string
	for _, port := range ports {
		at = append(at, port+"="+s.Address(port))
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, own, "-strangers", strings.Join(at, ","))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	return func() {
		cancel()
		_ = cmd.Wait() // it was killed
	}, nil
}

// beStrangers misbehaves towards a server, given as `port=address,...`, until ctx ends.
func beStrangers(ctx context.Context, server string) error {
	const last = 19
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, last); err != nil {
		return err
	}
	addresses, attempts := map[string]string{}, []strangers.Attempt{}
	for one := range strings.SplitSeq(server, ",") {
		port, address, _ := strings.Cut(one, "=")
		addresses[port] = address
	}
	for _, a := range strangers.Attempts() {
		if addresses[a.Port] != "" {
			attempts = append(attempts, a)
		}
	}
	var many []net.IP
	for i := range manyAddresses {
		many = append(many, net.IPv4(127, 0, 1, byte(i+1)))
	}
	var all sync.WaitGroup
	for _, c := range []*strangers.Crowd{
		{Attempts: attempts, Addresses: addresses, Connections: strangersOfOne, From: []net.IP{net.IPv4(127, 0, 0, 9)}},
		{Attempts: attempts, Addresses: addresses, Connections: strangersOfMany, From: many},
	} {
		all.Go(func() { c.Run(ctx) })
	}
	all.Wait()
	return nil
}

// watch looks at how much memory a process has, and returns the most of it when it is asked, once.
func watch(ctx context.Context, pid int) (most func() int64) {
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan int64)
	go func() {
		var most int64
		for {
			if u, err := usageOf(pid); err == nil {
				most = max(most, u.resident)
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
