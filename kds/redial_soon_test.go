package kds

import (
	"testing"
	"time"
)

// TestSoonest checks that a zone that just lost its session tries again at least once a second, and later, or if it never
// had one, as rarely as the backoff says.
func TestSoonest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		wait, lost, least, most time.Duration
	}{
		{300 * time.Millisecond, time.Second, 300 * time.Millisecond, 300 * time.Millisecond},
		{30 * time.Second, time.Second, soonWait / 2, soonWait},
		{30 * time.Second, soonTime, 30 * time.Second, 30 * time.Second},
		{8 * time.Second, time.Since(time.Time{}), 8 * time.Second, 8 * time.Second},
	} {
		for range 100 {
			if got := soonest(tt.wait, tt.lost); got < tt.least || got > tt.most {
				t.Fatalf("%s after the loss it waits %s instead of %s, want %s to %s", tt.lost, got, tt.wait, tt.least, tt.most)
			}
		}
	}
}
