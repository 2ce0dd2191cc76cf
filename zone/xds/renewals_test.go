package xds

import (
	"testing"
	"time"
)

// TestRenewalsGoByTheWallClock: what is due is said by the clock as it is now, however it was set; set back, it makes
// due once what was planned when it was ahead.
func TestRenewalsGoByTheWallClock(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := newRenewals(func() time.Time { return now }, nil)
	early, late := &proxy{}, &proxy{}
	names := map[*proxy]string{early: "early", late: "late"}
	due := func() (all string) {
		for {
			p, wait := r.next()
			if p == nil {
				if wait > renewalLook {
					t.Errorf("the clock is looked at in %s only", wait)
				}
				return all
			}
			all += names[p] + " "
			r.plan(p, now.Add(12*time.Hour), now)
		}
	}
	r.plan(early, now.Add(12*time.Hour), now)
	for _, step := range []struct {
		name string
		set  time.Duration
		want string
	}{
		{"nothing passes", 0, ""},
		{"an hour passes", time.Hour, ""},
		{"set forward past all", 40 * 24 * time.Hour, "early "},
		{"and on", time.Minute, ""},
		{"set back", -40 * 24 * time.Hour, "early "},
		{"set back far", -48 * time.Hour, "early "},
		{"and on", time.Minute, ""},
		{"set right", 48 * time.Hour, "early "},
		{"half a life passes", 12 * time.Hour, "early "},
	} {
		now = now.Add(step.set)
		if got := due(); got != step.want {
			t.Errorf("%s: due are %q, want %q", step.name, got, step.want)
		}
	}
	now = now.Add(time.Hour)
	r.plan(late, now.Add(12*time.Hour), now)
	now = now.Add(-time.Hour) // before anybody has looked
	if got := due(); got != "late " {
		t.Errorf("planned ahead and set back: due are %q", got)
	}
	now = now.Add(time.Minute)
	r.plan(late, now.Add(13*time.Hour), now.Add(time.Hour)) // signed by the clock when it was ahead, which was before now
	if got := due(); got != "late " {
		t.Errorf("signed ahead: due are %q", got)
	}
	now = now.Add(-time.Hour)
	if got := due(); got != "early late " && got != "late early " {
		t.Errorf("set back with two: due are %q", got)
	}
}
