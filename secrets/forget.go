package secrets

import "time"

// Forgetting returns the clock that decides when expired records are deleted for good. It returns now, but never runs
// ahead of the time that has really passed since this call. A wall clock that is set forward by mistake and back later
// must not destroy records that cannot be recreated, such as that of a valid certificate or a revoked token. A server
// deletes what this rule keeps after its next start. Use the clock for nothing else: now itself decides whether
// something has expired.
func Forgetting(now func() time.Time) func() time.Time {
	start := now()
	return forgetting(start, now, func() time.Duration { return now().Sub(start) })
}

// forgetting implements Forgetting. passed returns the time since start by a clock that cannot be set. For times from
// time.Now, Sub does.
func forgetting(start time.Time, now func() time.Time, passed func() time.Duration) func() time.Time {
	return func() time.Time {
		shown, elapsed := now().Round(0), start.Round(0).Add(passed())
		if shown.After(elapsed) {
			return elapsed
		}
		return shown
	}
}
