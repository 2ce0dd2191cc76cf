package xds

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"
)

// The rate of requests that a proxy may make over all its streams: a burst, as when it starts, and a number per second.
// Each namesPerRequest names count as one more. Answers of delta streams do not count, since there is one for each
// response. An Envoy makes few others, however often its configuration changes.
const (
	requestsAtOnce    = 1000
	requestsPerSecond = 200
	namesPerRequest   = 64
	// Each answer of a state-of-the-world stream repeats all names.
	repeatedPerRequest = 16 * namesPerRequest
)

// limitRequests is the limit as metrics name it.
const limitRequests = "requests"

func newRequestRate() *rate.Limiter { return rate.NewLimiter(requestsPerSecond, requestsAtOnce) }

// paced waits until the proxy may make a request of this weight. Until then the stream's input stays unread, so flow
// control stops the proxy. It fails when the stream or its credential ends. The caller holds no lock, so other streams
// continue.
func (s *session) paced(n int) error {
	wait := s.proxy.record.requests.ReserveN(time.Now(), min(n, requestsAtOnce/2)).Delay()
	if wait == 0 {
		return nil
	}
	s.proxies.metrics.over.WithLabelValues(limitRequests).Inc()
	text := fmt.Sprintf("over a limit: more than %d requests per second; the others wait", requestsPerSecond)
	if s.proxy.record.setProblem(problemLimits, text) {
		s.proxies.insights.mark(s.proxy.record, soon)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for _, ctx := range s.contexts {
		defer context.AfterFunc(ctx, func() { timer.Reset(0) })()
	}
	<-timer.C
	for _, ctx := range s.contexts {
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
