package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/causeway-mesh/causeway/test/cluster"
)

// usage is what a process has used: CPU since its start, and memory now.
type usage struct {
	cpu      time.Duration
	resident int64 // bytes
}

// clockTick is the unit of CPU time in /proc: USER_HZ, which is 100 on every Linux.
const clockTick = 10 * time.Millisecond

// usageOf reads /proc/<pid>/stat.
func usageOf(pid int) (usage, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, err
	}
	const afterName, user, system, resident = 2, 11, 12, 21
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+afterName:]))
	var numbers [3]int64
	for i, at := range []int{user, system, resident} {
		if numbers[i], err = strconv.ParseInt(fields[at], 10, 64); err != nil {
			return usage{}, err
		}
	}
	return usage{time.Duration(numbers[0]+numbers[1]) * clockTick, numbers[2] * int64(os.Getpagesize())}, nil
}

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
