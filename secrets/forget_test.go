package secrets

import (
	"testing"
	"time"
)

// TestForgetting checks that, however the wall clock is set, only records that have really expired are forgotten.
func TestForgetting(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	wall, passed := start, time.Duration(0)
	clock := forgetting(start, func() time.Time { return wall }, func() time.Duration { return passed })
	for _, step := range []struct {
		name         string
		passes, leap time.Duration
		want         time.Duration // since start
	}{
		{"time passes", time.Hour, 0, time.Hour},
		{"set forward", time.Minute, 40 * 24 * time.Hour, time.Hour + time.Minute},
		{"time passes at the wrong date", time.Hour, 0, 2*time.Hour + time.Minute},
		{"set right", 0, -40 * 24 * time.Hour, 2*time.Hour + time.Minute},
		{"set back", 0, -48 * time.Hour, 2*time.Hour + time.Minute - 48*time.Hour},
		{"set right again", time.Minute, 48 * time.Hour, 2*time.Hour + 2*time.Minute},
	} {
		passed += step.passes
		wall = wall.Add(step.passes + step.leap)
		if got := clock().Sub(start); got != step.want {
			t.Errorf("%s: the clock is at %s, want %s", step.name, got, step.want)
		}
	}
}

// TestForgettingByOneClock checks that a clock without a monotonic reading, as in tests, is trusted.
func TestForgettingByOneClock(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := Forgetting(func() time.Time { return now })
	now = now.Add(400 * 24 * time.Hour)
	if got := clock(); !got.Equal(now) {
		t.Errorf("the clock is at %s, want %s", got, now)
	}
}
