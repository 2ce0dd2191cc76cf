package access

import (
	"cmp"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits bound the rate of requests to the HTTP API. Zero means the default.
type Limits struct {
	// RequestsPerSecond and RequestsBurst apply to each user. Callers over loopback without a credential are not
	// limited. Default: 200, and twice as many at once.
	RequestsPerSecond float64
	RequestsBurst     int
	// FailuresPerSecond and FailuresBurst apply to each address whose requests fail authentication. Default: 10, and
	// 200 at once.
	FailuresPerSecond float64
	FailuresBurst     int
}

// DefaultRequestsPerSecond is Limits.RequestsPerSecond unless set.
const DefaultRequestsPerSecond = 200

func (l Limits) withDefaults() Limits {
	l.RequestsPerSecond = cmp.Or(l.RequestsPerSecond, DefaultRequestsPerSecond)
	l.RequestsBurst = cmp.Or(l.RequestsBurst, int(2*l.RequestsPerSecond))
	l.FailuresPerSecond = cmp.Or(l.FailuresPerSecond, 10)
	l.FailuresBurst = cmp.Or(l.FailuresBurst, 200)
	return l
}

// maxLimiters bounds the names in a generation of limiters.
const maxLimiters = 4096

// limiters holds one rate limiter per name. It keeps the names of the last two generations; a name that was absent for
// longer starts afresh.
type limiters struct {
	perSecond rate.Limit
	burst     int
	now       func() time.Time

	mu            sync.Mutex
	current, last map[string]*rate.Limiter // guarded by mu
}

func newLimiters(perSecond float64, burst int, now func() time.Time) *limiters {
	return &limiters{perSecond: rate.Limit(perSecond), burst: burst, now: now, current: map[string]*rate.Limiter{}}
}

// allow takes one from the name's budget and reports whether there was one.
func (l *limiters) allow(name string) bool { return l.of(name).AllowN(l.now(), 1) }

func (l *limiters) of(name string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one, ok := l.current[name]; ok {
		return one
	}
	one, ok := l.last[name]
	if !ok {
		one = rate.NewLimiter(l.perSecond, l.burst)
	}
	if len(l.current) >= maxLimiters {
		l.current, l.last = map[string]*rate.Limiter{}, l.current
	}
	l.current[name] = one
	return one
}

// Pace bounds how often each of many names may do something. It is safe for concurrent use.
type Pace struct{ limiters *limiters }

// NewPace allows each name a burst, then one per interval.
func NewPace(every time.Duration, burst int, now func() time.Time) *Pace {
	return &Pace{newLimiters(1/every.Seconds(), burst, now)}
}

// Allow reports whether the name may, and counts it.
func (p *Pace) Allow(name string) bool { return p.limiters.allow(name) }
