package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

// markPrefix precedes a mark's number inside a policy.
const markPrefix = "spiffe://bench/mark-"

// marks track changes to their receivers. Each written change carries its own number.
type marks struct {
	mu   sync.Mutex
	all  []*mark       // by number; guarded by mu
	bell chan struct{} // rings when a mark has arrived everywhere
}

type mark struct {
	start time.Time
	want  int
	took  map[int]time.Duration // by receiver
}

func newMarks() *marks { return &marks{bell: make(chan struct{}, 1)} }

// next creates a mark that the given number of receivers await, and starts its clock.
func (m *marks) next(receivers int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, &mark{start: time.Now(), want: receivers, took: make(map[int]time.Duration, receivers)})
	return len(m.all) - 1
}

// saw records all marks in a received message.
func (m *marks) saw(receiver int, raw []byte) {
	for _, n := range marksIn(raw) {
		m.arrive(receiver, n)
	}
}

// marksIn returns the marks in a message.
func marksIn(raw []byte) (all []int) {
	for {
		_, rest, found := bytes.Cut(raw, []byte(markPrefix))
		if !found {
			return all
		}
		raw = rest
		end := 0
		for end < len(raw) && raw[end] >= '0' && raw[end] <= '9' {
			end++
		}
		if n, err := strconv.Atoi(string(raw[:end])); err == nil {
			all = append(all, n)
		}
	}
}

func (m *marks) arrive(receiver, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n >= len(m.all) {
		return
	}
	k := m.all[n]
	if _, again := k.took[receiver]; again {
		return
	}
	k.took[receiver] = time.Since(k.start)
	if len(k.took) == k.want {
		select {
		case m.bell <- struct{}{}:
		default:
		}
	}
}

// last returns how long mark n took to its last receiver so far.
func (m *marks) last(n int) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	var last time.Duration
	for _, d := range m.all[n].took {
		last = max(last, d)
	}
	return last
}

// wait returns when all marks from n on have arrived at all receivers.
func (m *marks) wait(ctx context.Context, n int) error {
	for {
		missing := m.missing(n)
		if missing == "" {
			return nil
		}
		select {
		case <-m.bell:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", missing, context.Cause(ctx))
		}
	}
}

func (m *marks) missing(n int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for ; n < len(m.all); n++ {
		if k := m.all[n]; len(k.took) < k.want {
			return fmt.Sprintf("change %d has reached %d of %d", n, len(k.took), k.want)
		}
	}
	return ""
}

// percentile returns the p-th percentile of durations, in milliseconds.
func percentile(d []time.Duration, p int) float64 {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return milliseconds(d[min(len(d)-1, len(d)*p/100)])
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
