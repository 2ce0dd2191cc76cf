package xds

import (
	"runtime"
	"strings"
	"sync"
	"testing"
)

// descend uses a stack of more than 16 KiB.
//
//go:noinline
func descend(n int) byte {
	var frame [1 << 10]byte
	frame[n] = byte(n)
	if n == 0 {
		return frame[0]
	}
	return descend(n-1) + frame[n]
}

// stacks returns the bytes of all goroutines' stacks, after two collections have shrunk them.
func stacks() int {
	for range 2 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.StackInuse)
}

// waitDeeply waits as the goroutine of a stream does, below 3 KiB of frames.
//
//go:noinline
func waitDeeply(ready *sync.WaitGroup, end <-chan struct{}) byte {
	var frame [3 << 10]byte
	frame[0] = 1
	ready.Done()
	<-end
	return frame[0]
}

func TestWorkAsideLeavesStacksSmall(t *testing.T) {
	const streams, most = 200, 11 << 10
	var a aside
	end := make(chan struct{})
	var ready, ended sync.WaitGroup
	before := stacks()
	for range streams {
		ready.Add(1)
		ended.Go(func() {
			a.do(func() { descend(20) })
			waitDeeply(&ready, end)
		})
	}
	ready.Wait()
	each := (stacks() - before) / streams
	close(end)
	ended.Wait()
	if each > most {
		t.Errorf("a waiting goroutine has a stack of %d bytes: want at most %d", each, most)
	}
}

func TestWorkAsideIsDoneOnce(t *testing.T) {
	var a aside
	var mu sync.Mutex
	done := map[int]int{}
	var calls sync.WaitGroup
	for i := range 1000 {
		calls.Go(func() {
			a.do(func() {
				mu.Lock()
				defer mu.Unlock()
				done[i]++
			})
			mu.Lock()
			defer mu.Unlock()
			if done[i] != 1 {
				t.Errorf("call %d was done %d times when it returned", i, done[i])
			}
		})
	}
	calls.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) > 0 || a.workers > runtime.GOMAXPROCS(0) {
		t.Errorf("%d calls wait for %d workers", len(a.waiting), a.workers)
	}
}

func TestPanicsAsideReachTheCaller(t *testing.T) {
	var a aside
	defer func() {
		reason, ok := recover().(string)
		if !ok || !strings.HasPrefix(reason, "no such proxy\n") || !strings.Contains(reason, "panicsAside") {
			t.Errorf("the caller got %q", reason)
		}
		a.do(func() {}) // the next call is served
	}()
	a.do(panicsAside)
	t.Error("the caller goes on")
}

func panicsAside() { panic("no such proxy") }
