package kds

import (
	"context"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/resources"
)

const (
	// shortestOutage and longestOutage bound the pause before the next try while the store cannot write. It doubles
	// each time.
	shortestOutage, longestOutage = 50 * time.Millisecond, time.Second
	// patience is the interval of the keepalive requests to a peer that waits for an answer meanwhile.
	patience = 30 * time.Second
)

// outage is a time in which the store cannot write, as one message sees it.
type outage struct {
	pause time.Duration
	// sent is the time of the last message to the peer.
	sent time.Time
}

// waitOut pauses before a message is applied again: while the store cannot write, received messages are neither lost
// nor acknowledged, and the session stays. It returns the reason if the session ended meanwhile.
func (v *receiver) waitOut(ctx context.Context, o *outage, t resources.Type, revision uint64, why error) error {
	line := v.ledger.Line(v.arrival.Direction, t, false)
	if o.pause == 0 {
		o.pause, o.sent = shortestOutage, time.Now()
		line.Waits(revision, v.session.now())
		v.log.Warn("the store cannot write: received messages wait unacknowledged", "type", string(t), "error", why)
	}
	if time.Since(o.sent) > patience && v.resume {
		// A request without a nonce is a sign of life only, which only our own senders understand.
		if err := v.send(ctx, &discovery.DeltaDiscoveryRequest{TypeUrl: string(t)}); err != nil {
			line.Waits(0, time.Time{})
			return err
		}
		o.sent = time.Now()
	}
	timer := time.NewTimer(o.pause)
	defer timer.Stop()
	o.pause = min(2*o.pause, longestOutage)
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		line.Waits(0, time.Time{}) // the next session begins with what it lacks
		return context.Cause(ctx)
	}
}
