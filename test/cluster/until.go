package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// pollInterval is how often a condition is asked.
const pollInterval = 10 * time.Millisecond

// Until asks condition until it returns nil, and fails when ctx or within, whichever is first, ends. The error says
// what was awaited and what condition said last.
func Until(ctx context.Context, within time.Duration, what string, condition func(context.Context) error) error {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var last error
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err // what is said after the deadline is only about the deadline
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s: %w", time.Since(start).Round(time.Millisecond), what, last)
		case <-tick.C:
		}
		var final *finalError
		if errors.As(err, &final) {
			return fmt.Errorf("waiting for %s: %w", what, final.err)
		}
	}
}

// finalError ends Until at once.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }
func (e *finalError) Unwrap() error { return e.err }

// Final marks an error of a condition that no waiting will heal.
func Final(err error) error { return &finalError{err} }
