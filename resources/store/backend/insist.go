package backend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/causeway-mesh/causeway/resources/store"
)

// DefaultStartTimeout is how long servers retry their start by default.
const DefaultStartTimeout = time.Minute

// shortestPause and longestPause bound the wait before a retry.
const (
	shortestPause = 200 * time.Millisecond
	longestPause  = 2 * time.Second
)

// Insist runs start, which opens the store with Open, until it succeeds, fails for another reason than that etcd does
// not answer, or StartTimeout is over. An election, or a member that is slightly late, does not fail a start. start
// must leave nothing open if it fails. Insist calls tell with the reason before each retry. It returns the error of the
// last attempt.
func (c *Config) Insist(ctx context.Context, tell func(why error), start func() error) error {
	if c.Kind != Etcd {
		return start()
	}
	log := c.logger()
	pause := backoff.NewExponentialBackOff(backoff.WithInitialInterval(shortestPause),
		backoff.WithMaxInterval(longestPause), backoff.WithMaxElapsedTime(0))
	begin := time.Now()
	for tries := 1; ; tries++ {
		err := start()
		left := c.StartTimeout - time.Since(begin)
		switch {
		case err == nil || !errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil || c.StartTimeout == 0:
			return err
		case left <= 0:
			return fmt.Errorf("after %d tries in %s (--etcd-start-timeout): %w", tries,
				time.Since(begin).Round(time.Second), err)
		}
		wait := min(pause.NextBackOff(), left)
		tell(err)
		log.Warn("etcd does not answer: trying to start again", "tries", tries, "wait", wait.Round(time.Millisecond),
			"left", left.Round(time.Second), "error", err)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}
