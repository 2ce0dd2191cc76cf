package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Until pauses after each check for as long as three checks take, within these bounds. A condition that starts a program
// then leaves most of the processor to the servers that it waits for. It also pauses for a twentieth of what it has
// waited, up to longPause, because checks took a fifth of the processor time of the tests that wait; and for an eighth,
// up to maxPause, if a check takes as long as a program.
const (
	minPause  = 10 * time.Millisecond
	longPause = 100 * time.Millisecond
	maxPause  = 500 * time.Millisecond
	program   = 10 * time.Millisecond
)

// pauseAfter returns how long to pause after a check that took this long, when so much has been waited.
func pauseAfter(check, waited time.Duration) time.Duration {
	pause := max(3*check, minPause, min(waited/20, longPause))
	if check >= program {
		pause = max(pause, waited/8)
	}
	return min(pause, maxPause)
}

// Until calls condition until it returns nil. It fails when ctx or within ends, whichever is first. The error names
// what was awaited and the last error of condition.
func Until(ctx context.Context, within time.Duration, what string, condition func(context.Context) error) error {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var last error
	for {
		begun := time.Now()
		err := condition(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err // an error after the deadline is only about the deadline
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s: %w", time.Since(start).Round(time.Millisecond), what, last)
		case <-time.After(pauseAfter(time.Since(begun), time.Since(start))):
		}
		var final *finalError
		if errors.As(err, &final) {
			return fmt.Errorf("waiting for %s: %w", what, final.err)
		}
	}
}

// finalError makes Until return at once.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }
func (e *finalError) Unwrap() error { return e.err }

// Final marks an error of a condition that waiting cannot resolve.
func Final(err error) error { return &finalError{err} }
