package zone

import (
	"time"

	"github.com/causeway-mesh/causeway/resources"
	"github.com/causeway-mesh/causeway/zone/xds"
)

// ingressConditions reports whether the proxies of this zone's ingresses are connected.
type ingressConditions struct {
	zone string
	// started is the time from which this server knows about proxies.
	started time.Time
	// presence is Proxies.Ingress.
	presence func(ingress resources.Key) xds.Presence
}

// of returns the condition of a ZoneIngress of this zone, and nil for other resources. Each zone reports its own
// ingresses.
func (c *ingressConditions) of(r *resources.Resource) []resources.Condition {
	if r.Type != resources.TypeZoneIngress || r.Zone() != c.zone {
		return nil
	}
	out := resources.Condition{Type: resources.ConditionConnected, Status: resources.ConditionTrue,
		Reason: resources.ConditionConnected, Message: "its proxy is connected"}
	is, notSeen := c.presence(r.Key), "no proxy has connected since the server started at "+c.started.UTC().Format(time.RFC3339)
	switch {
	case is.Connected:
	case is.Awaited:
		out.Status, out.Reason = resources.ConditionUnknown, "Awaited"
		out.Message = notSeen + ", and one may still come back"
	case is.Left.IsZero():
		out.Status, out.Reason, out.Message = resources.ConditionFalse, "NotSeen", notSeen
	default:
		out.Status, out.Reason = resources.ConditionFalse, "NotConnected"
		out.Message = "no proxy has been connected since " + is.Left.UTC().Format(time.RFC3339)
	}
	return []resources.Condition{out}
}
