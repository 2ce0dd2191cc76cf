package main

import (
	"context"
	"runtime"
	"syscall"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// ownCPU returns the CPU time of this process.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// inUse returns the size of a server's heap after two collections, plus its stacks, in MiB. Unlike resident memory, it
// contains no uncollected garbage and no spare room.
func inUse(ctx context.Context, s *cluster.Server) (float64, error) {
	for range 2 { // the content of a pool survives one collection
		if _, err := s.Diagnostics(ctx, "/debug/pprof/heap?gc=1"); err != nil {
			return 0, err
		}
	}
	heap, err := s.Metric(ctx, "go_memstats_heap_alloc_bytes")
	if err != nil {
		return 0, err
	}
	stacks, err := s.Metric(ctx, "go_memstats_stack_inuse_bytes")
	return (heap + stacks) / mebibyte, err
}

const mebibyte = 1 << 20

// collect collects the garbage of this process before a turn, so that it need not within it. The peers that it stands for
// collect theirs on machines of their own; here, one process has the garbage of ten thousand of them.
func collect() { runtime.GC() }

// machineNoise runs a fixed piece of work and returns its wall time and its CPU time. The difference is the share of
// other processes on the machine.
func machineNoise() (wall, cpu time.Duration) {
	start, used := time.Now(), ownCPU()
	sum := uint64(1)
	for i := range uint64(300_000_000) {
		sum = sum*6364136223846793005 + i
	}
	wall, cpu = time.Since(start), ownCPU()-used
	if sum == 0 {
		return 0, 0 // keeps the compiler from removing the loop
	}
	return wall, cpu
}
