package kds

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// moveWithin bounds the wait of a zone that lost one replica of the global before it connects to the next.
const moveWithin = 250 * time.Millisecond

// For soonTime after it lost a session, a zone waits at most soonWait between two attempts: where replicas in Kubernetes
// stand in for each other, another one serves within seconds.
const (
	soonTime = 10 * time.Second
	soonWait = time.Second
)

// soonest returns the wait before the next attempt of a zone that lost its session that long ago. The part that is random
// keeps the zones of a global from coming back all at once.
func soonest(wait, lost time.Duration) time.Duration {
	if lost >= soonTime || wait <= soonWait {
		return wait
	}
	return soonWait/2 + rand.N(soonWait/2) //nolint:gosec // see above
}

// Run keeps a session open until ctx ends, and then returns nil. It fails at once only for an error that a retry cannot
// mend.
func (z *Zone) Run(ctx context.Context) error {
	if err := CheckZoneName(z.config.Zone); err != nil {
		return err
	}
	pause := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(z.config.BackoffMin), backoff.WithMaxInterval(z.config.BackoffMax),
		backoff.WithMaxElapsedTime(0), backoff.WithMultiplier(2), backoff.WithRandomizationFactor(0.5))
	var wait time.Duration
	var lost time.Time // when the last session ended that was established; zero before there was one
	// Each zone has its own random order, so that the zones of a replica that stops spread over the others.
	z.order = rand.Perm(z.targets()) //nolint:gosec // which replica is first is not a secret
	for failed := 0; ctx.Err() == nil; {
		z.opened = time.Time{}
		err := z.config.Panics.Do(serving, func() error { return z.session(ctx) })
		if ctx.Err() != nil {
			return nil
		}
		// A session that outlasted the wait before it resets the backoff; one that ends as soon as it begins lengthens
		// the wait each time.
		if !z.opened.IsZero() && time.Since(z.opened) > wait || errors.Is(err, ErrResync) {
			pause.Reset()
			failed, lost = 0, time.Now()
		}
		global := z.targetNow()
		z.target++
		failed++
		if failed < z.targets() {
			wait = rand.N(moveWithin) //nolint:gosec // the zones of a replica should not come to another all at once
		} else {
			wait, failed = soonest(pause.NextBackOff(), time.Since(lost)), 0
		}
		z.config.Log.Warn("no session with the global: trying again", "zone", z.config.Zone, "global", global, "next",
			z.targetNow(), "wait", wait.Round(time.Millisecond), "error", err)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
	return nil
}

// targets returns the number of addresses.
func (z *Zone) targets() int { return len(z.config.Others) + 1 }

// targetNow returns the address of the global to use now.
func (z *Zone) targetNow() string {
	if i := z.order[z.target%z.targets()]; i > 0 {
		return z.config.Others[i-1]
	}
	return z.config.Target
}
