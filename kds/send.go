package kds

import (
	"context"
	"fmt"
	"time"
)

// promptBytes may stand unanswered in a stream without a send having to wait: gRPC takes 64 KiB of a stream's messages before
// it blocks for those that the peer has not read, and what the peer has answered it has read.
const promptBytes = 32 << 10

// sendWithin sends m and waits for it, at most for the timeout. When it fails, the stream must be ended, which is what
// ends the send still under way: gRPC blocks while the peer does not read.
func sendWithin[M any](ctx context.Context, timeout time.Duration, send func(M) error, m M) error {
	sent := make(chan error, 1)
	go func() { sent <- send(m) }()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case err := <-sent:
		return err
	case <-timer.C:
		return fmt.Errorf("%w: nothing went through for %s", ErrSendTimeout, timeout)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// receiveAll hands what arrives to in until the stream or ctx ends, and returns why.
func receiveAll[M any](ctx context.Context, receive func() (M, error), in chan<- M) error {
	for {
		m, err := receive()
		if err != nil {
			return err
		}
		select {
		case in <- m:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
