package kds

import (
	"context"
	"sync"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/causeway-mesh/causeway/kds/tracker"
	"github.com/causeway-mesh/causeway/resources"
)

const (
	// DefaultZoneChanges is the default of Limits.Changes.
	DefaultZoneChanges = 500
	// changesAtOnce is the burst, in seconds of the rate: twice the resources of a type that a zone may have, which is two
	// complete lists.
	changesAtOnce = 200
	// costOfChange is the cost of a durable change. An item that changes nothing, or the status of a proxy, costs 1.
	costOfChange = 20
)

// allowance limits the rate of one zone's changes, over all of its sessions, because each change is made durable here and
// sent to other zones. A zone that has used it up waits; the others do not. It is safe for concurrent use. A nil
// *allowance is unlimited.
type allowance struct {
	perSecond float64 // in the units of costOfChange

	mu     sync.Mutex
	tokens float64   // guarded by mu; negative if the zone has to wait
	at     time.Time // guarded by mu: when left was true
}

func newAllowance(changes int, now time.Time) *allowance {
	perSecond := float64(changes * costOfChange)
	return &allowance{perSecond: perSecond, tokens: perSecond * changesAtOnce, at: now}
}

// spend spends parts and returns how long the zone has to wait.
func (a *allowance) spend(parts int, now time.Time) time.Duration {
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tokens = min(a.perSecond*changesAtOnce, a.tokens+max(0, now.Sub(a.at).Seconds())*a.perSecond) - float64(parts)
	a.at = now
	return time.Duration(max(0, -a.tokens) / a.perSecond * float64(time.Second))
}

// partsOf returns the cost of a message that made this many durable changes.
func partsOf(t resources.Type, resp *discovery.DeltaDiscoveryResponse, changes int) int {
	if isLive(t) {
		changes = 0
	}
	return len(resp.GetResources()) + len(resp.GetRemovedResources()) + changes*costOfChange
}

// restAfterMessage waits until the zone may change something again, at the beginning and after each message that was
// answered: what the zone sends meanwhile stays unread.
func (v *receiver) restAfterMessage(ctx context.Context) error {
	parts := v.parts
	v.parts = 0
	wait := v.allowance.spend(parts, v.session.now())
	if wait == 0 {
		v.over.End(tracker.LimitChanges, "")
		return nil
	}
	v.over.Meet(tracker.LimitChanges, "", int64(v.allowance.perSecond/costOfChange), 1)
	return rest(ctx, wait)
}

// spendRest spends what the last message of a session cost if it was not answered: a zone that hangs up has changed what
// it has changed.
func (v *receiver) spendRest() { v.allowance.spend(v.parts, v.session.now()) }

// rest waits for a time, or for the end of ctx, whose cause it returns.
func rest(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
