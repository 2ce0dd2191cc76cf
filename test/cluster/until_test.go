package cluster

import (
	"testing"
	"time"
)

func TestPauseAfter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ check, waited, want time.Duration }{
		{0, 0, minPause},
		{time.Millisecond, time.Second, 50 * time.Millisecond},
		{time.Millisecond, time.Minute, longPause},
		{20 * time.Millisecond, 0, 60 * time.Millisecond},
		{20 * time.Millisecond, 2 * time.Second, 250 * time.Millisecond},
		{20 * time.Millisecond, time.Minute, maxPause},
		{time.Second, 0, maxPause},
	} {
		if got := pauseAfter(tt.check, tt.waited); got != tt.want {
			t.Errorf("after a check of %s, %s on: %s, want %s", tt.check, tt.waited, got, tt.want)
		}
	}
}
