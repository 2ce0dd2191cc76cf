package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// When a thread ends, the kernel ends the processes that it started, if they are to end with the program.
func TestProcessOutlivesTheThreadThatStartedIt(t *testing.T) {
	c, err := New(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	p, err := c.process("shell", "/bin/sh", []string{"-c", `trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done`})
	if err != nil {
		t.Fatal(err)
	}
	thread := make(chan int)
	begin := func() {
		runtime.LockOSThread() // forever: the thread ends with the goroutine
		id := syscall.Gettid()
		if id != os.Getpid() { // the first thread ends only with the program
			if err := p.Start(); err != nil {
				t.Error(err)
			}
		}
		thread <- id
	}
	go begin()
	id := <-thread
	if id == os.Getpid() {
		go begin()
		id = <-thread
	}
	waitFor(t, "the thread to end", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", id))
		return errors.Is(err, os.ErrNotExist)
	})
	waitFor(t, "the script to be up", func() bool { return strings.Contains(p.Log(), "\nup\n") })
	stopped, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.Stop(stopped); err != nil {
		t.Error(err)
	}
}

// TestRefusedStep checks that the refused call fails, and that it is the only one.
func TestRefusedStep(t *testing.T) {
	if err := CanTrace(); err != nil || !CanRefuse {
		t.Log(err)
		return
	}
	c, err := New(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	steps := &Steps{}
	steps.RefuseAt(2, c.Dir()+"/made")
	p, err := c.process("shell", "/bin/sh", []string{"-c", `for n in 1 2 3; do true > "$0/made-$n"; done; exit 0`, c.Dir()})
	if err != nil {
		t.Fatal(err)
	}
	p.Trace(steps)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(steps.Reached(), "made-2") || !strings.Contains(p.Log(), "No space left") {
		t.Errorf("it was refused at %q: %s", steps.Reached(), p.Log())
	}
	for n, want := range map[int]bool{1: true, 2: false, 3: true} {
		if _, err := os.Stat(fmt.Sprintf("%s/made-%d", c.Dir(), n)); (err == nil) != want {
			t.Errorf("file %d: %v, want it: %v", n, err, want)
		}
	}
}
