package main

import (
	"testing"
	"time"
)

// TestAge checks that a time that has not come yet by this machine's clock has no age that is said to be known.
func TestAge(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for ago, want := range map[time.Duration]string{
		0: "0s", -2 * time.Second: "0s", 90 * time.Second: "1m", 50 * time.Hour: "2d", -time.Hour: "unknown",
	} {
		if got := age(now.Add(-ago), now); got != want {
			t.Errorf("%s ago: %q, want %q", ago, got, want)
		}
	}
	if got := age(time.Time{}, now); got != "" {
		t.Errorf("no time: %q", got)
	}
}
