package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// crowd is many simulated peers, each with its own goroutine. They run until close.
type crowd struct {
	what  string
	size  int
	ctx   context.Context // ends when the first peer fails; its cause is the reason
	stop  context.CancelFunc
	peers sync.WaitGroup
}

// newCrowd starts all peers at once.
func newCrowd(ctx context.Context, what string, size int, run func(ctx context.Context, i int) error) *crowd {
	c := &crowd{what: what, size: size}
	ctx, fail := context.WithCancelCause(ctx)
	c.ctx, c.stop = ctx, func() { fail(nil) }
	for i := range size {
		c.peers.Go(func() {
			if err := run(ctx, i); err != nil && ctx.Err() == nil {
				fail(fmt.Errorf("%s %d: %w", what, i, err))
			}
		})
	}
	return c
}

// close ends all peers and waits.
func (c *crowd) close() {
	c.stop()
	c.peers.Wait()
}

// await returns once every peer is ready.
func (c *crowd) await(within time.Duration, ready func(i int) bool) error {
	deadline := time.After(within)
	for {
		done, missing := 0, 0
		for i := range c.size {
			if ready(i) {
				done++
			} else {
				missing = i
			}
		}
		if done == c.size {
			return nil
		}
		select {
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		case <-deadline:
			return fmt.Errorf("%s: %d of %d are there after %s, and number %d is not", c.what, done, c.size, within, missing)
		case <-time.After(2 * time.Millisecond):
		}
	}
}
