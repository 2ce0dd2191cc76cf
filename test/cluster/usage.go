package cluster

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process has used: CPU since its start, and memory now.
type Usage struct {
	CPU      time.Duration
	Resident int64 // bytes
}

// clockTick is the unit of CPU time in /proc: USER_HZ, which is 100 on every Linux.
const clockTick = 10 * time.Millisecond

// UsageOf reads /proc/<pid>/stat. It fails where there is no such process.
func UsageOf(pid int) (Usage, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, err
	}
	const afterName, user, system, resident = 2, 11, 12, 21
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+afterName:]))
	var numbers [3]int64
	for i, at := range []int{user, system, resident} {
		if numbers[i], err = strconv.ParseInt(fields[at], 10, 64); err != nil {
			return Usage{}, err
		}
	}
	return Usage{time.Duration(numbers[0]+numbers[1]) * clockTick, numbers[2] * int64(os.Getpagesize())}, nil
}
