package secrets

import "time"

// Forgetting returns the clock by which what has expired is forgotten for good. It is now, but never further on than time has really
// passed since this call: a wall clock that is set forward by mistake, and back later, must not cost what cannot be made again, such as
// the record of a certificate that is good, or of a token that was revoked. What a server does not forget for that, it forgets after
// its next start. The clock is for nothing else: whether something has expired is judged by now itself.
func Forgetting(now func() time.Time) func() time.Time {
	start := now()
	return forgetting(start, now, func() time.Duration { return now().Sub(start) })
}

// forgetting: passed is how long ago start was by a clock that nobody sets. Of times that time.Now returns, Sub is just that.
func forgetting(start time.Time, now func() time.Time, passed func() time.Duration) func() time.Time {
	return func() time.Time {
		shown, elapsed := now().Round(0), start.Round(0).Add(passed())
		if shown.After(elapsed) {
			return elapsed
		}
		return shown
	}
}
