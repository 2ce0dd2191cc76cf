package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/causeway-mesh/causeway/test/cluster"
	"github.com/causeway-mesh/causeway/test/strangers"
)

// mob is a process that runs only on idle processors. It ends with its standard input, and then prints how many
// connections it made.
type mob struct {
	cmd   *exec.Cmd
	end   io.Closer
	said  bytes.Buffer
	once  sync.Once
	came  int
	since time.Time
}

// gatherStrangers starts strangers that connect to the given ports of s.
func gatherStrangers(ctx context.Context, s *cluster.Server, ports []string) (*mob, error) {
	var at []string
	for _, port := range ports {
		at = append(at, port+"="+s.Address(port))
	}
	return gatherMob(ctx, "-strangers", strings.Join(at, ","))
}

// gatherIdlers starts a process that wastes the given number of processors.
func gatherIdlers(ctx context.Context, cores float64) (*mob, error) {
	return gatherMob(ctx, "-idlers", fmt.Sprint(cores))
}

func gatherMob(ctx context.Context, args ...string) (*mob, error) {
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	m := &mob{cmd: exec.CommandContext(ctx, own, args...), since: time.Now()}
	m.cmd.Stderr, m.cmd.Stdout = os.Stderr, &m.said
	if m.end, err = m.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return m, startLast(m.cmd)
}

// startLast starts a process all of whose threads yield to all others. The priority belongs to a thread, and a child
// inherits that of the thread that starts it.
func startLast(cmd *exec.Cmd) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // forever: the thread ends with the goroutine
		err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
		if err == nil {
			err = cmd.Start()
		}
		done <- err
	}()
	return <-done
}

// disperse ends the mob, waits for it, and returns how many connections it made.
func (m *mob) disperse() int {
	m.once.Do(func() {
		_ = m.end.Close()
		_ = m.cmd.Wait() // only its output counts
		m.came, _ = strconv.Atoi(strings.TrimSpace(m.said.String()))
	})
	return m.came
}

// untilDismissed returns a context that ends with standard input.
func untilDismissed(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	return ctx
}

// beStrangers misbehaves towards a server, given as `port=address,...`.
func beStrangers(ctx context.Context, server string) error {
	ctx = untilDismissed(ctx)
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
	var came atomic.Int64
	for _, c := range []*strangers.Crowd{
		{Attempts: attempts, Addresses: addresses, Connections: strangersOfOne, From: []net.IP{net.IPv4(127, 0, 0, 9)}},
		{Attempts: attempts, Addresses: addresses, Connections: strangersOfMany, From: many},
	} {
		all.Go(func() {
			c.Run(ctx)
			came.Add(c.Came())
		})
	}
	all.Wait()
	fmt.Println(came.Load())
	return nil
}

// beIdle uses the given number of processors.
func beIdle(ctx context.Context, cores float64) error {
	const turn = 10 * time.Millisecond
	ctx = untilDismissed(ctx)
	var all sync.WaitGroup
	n := runtime.NumCPU()
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				for begin := time.Now(); time.Since(begin) < time.Duration(cores/float64(n)*float64(turn)); {
				}
				_ = sleep(ctx, turn-time.Duration(cores/float64(n)*float64(turn)))
			}
		})
	}
	all.Wait()
	fmt.Println(0)
	return nil
}
