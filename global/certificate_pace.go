package global

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/causeway-mesh/causeway/kds"
)

// A zone needs a certificate at half of the last one's life, and when authorities rotate. Each is a line of the audit
// log, so a zone that asks in a loop would push out what others did.
const (
	certificateEvery = 10 * time.Second
	certificateBurst = 50
)

// certificatePace bounds the certificates that zones are given. The zero value is ready to use, by several goroutines.
type certificatePace struct {
	mu    sync.Mutex
	zones map[string]*rate.Limiter // guarded by mu; of zones that have a record
}

// take returns an error if the zone was given too many certificates up to now.
func (p *certificatePace) take(zone string, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.zones == nil {
		p.zones = map[string]*rate.Limiter{}
	}
	one := p.zones[zone]
	if one == nil {
		one = rate.NewLimiter(rate.Every(certificateEvery), certificateBurst)
		p.zones[zone] = one
	}
	if !one.AllowN(now, 1) {
		return fmt.Errorf("%w: the zone asks for certificates in a loop: it may have %d at once, then one in %s",
			kds.ErrNotAllowed, certificateBurst, certificateEvery)
	}
	return nil
}
