package xds

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
)

// aside runs work that needs a deep stack on goroutines that end soon. The goroutine of a stream lives as long as its
// proxy is connected, and a stack that has grown while it waits does not shrink below four times of what it needs then:
// building the configuration on it would cost 8 KiB for each proxy. Many calls at once also share a few stacks, which
// grow once.
type aside struct {
	mu      sync.Mutex
	waiting []*asideJob // guarded by mu: calls that no worker has taken, oldest first
	workers int         // guarded by mu
}

type asideJob struct {
	work func()
	// panicked is what work panicked with. It is set before done is closed.
	panicked any
	done     chan struct{}
}

// do returns after work has. A panic of work continues in the caller. work must not wait for another call of do.
func (a *aside) do(work func()) {
	j := &asideJob{work: work, done: make(chan struct{})}
	a.mu.Lock()
	a.waiting = append(a.waiting, j)
	more := a.workers < runtime.GOMAXPROCS(0)
	if more {
		a.workers++
	}
	a.mu.Unlock()
	if more {
		go a.run()
	}
	<-j.done
	if j.panicked != nil {
		panic(j.panicked)
	}
}

// run works until nothing waits.
func (a *aside) run() {
	for j := a.next(); j != nil; j = a.next() {
		j.run()
	}
}

// next takes the oldest job. Without one it returns nil, and the worker ends.
func (a *aside) next() *asideJob {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) == 0 {
		a.workers--
		a.waiting = nil
		return nil
	}
	j := a.waiting[0]
	a.waiting[0] = nil
	a.waiting = a.waiting[1:]
	return j
}

// run does the work. Its caller gets a panic with the stack of the work, which a stack of the caller does not show.
func (j *asideJob) run() {
	defer close(j.done)
	defer func() {
		if reason := recover(); reason != nil {
			j.panicked = fmt.Sprintf("%v\n\n%s", reason, debug.Stack())
		}
	}()
	j.work()
}
