package xds

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
)

// aside runs work that needs a deep stack on short-lived goroutines. A stream's goroutine lives as long as its proxy is
// connected, and the stack of a waiting goroutine does not shrink below four times its use: building the configuration
// there would cost 8 KiB per proxy. Concurrent calls also share a few stacks, which grow once.
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

// do runs work and returns after it. A panic in work continues in the caller. work must not wait for another call of
// do.
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

// run works until the queue is empty.
func (a *aside) run() {
	for j := a.next(); j != nil; j = a.next() {
		j.run()
	}
}

// next takes the oldest job. If there is none, it returns nil and the worker ends.
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

// run does the work. The caller gets a panic with the stack of the work, which its own stack does not contain.
func (j *asideJob) run() {
	defer close(j.done)
	defer func() {
		if reason := recover(); reason != nil {
			j.panicked = fmt.Sprintf("%v\n\n%s", reason, debug.Stack())
		}
	}()
	j.work()
}
